"""A slot's report: nothing of it is lost on its way to the driver."""

from __future__ import annotations

from dataclasses import MISSING, fields

from stormline.runtime.messages.sink_handle import SinkHandle
from stormline.runtime.messages.wave import AttemptResult, DeferredTask, Failure, PartitionBatch
from stormline.runtime.processing.slot_report import SlotReport, pack_report, read_report
from stormline.runtime.tuples.delivery import Delivery
from stormline.runtime.tuples.packing import ARROW, Packed
from stormline.topology.attempt import TransactionAttempt


def full_report() -> SlotReport:
    class Position:  # as one of a script: no other process could import it
        def __init__(self, offset: int) -> None:
            self.offset = offset

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Position) and other.offset == self.offset

        def __hash__(self) -> int:
            return self.offset

    kept = [Delivery(1, 4, 9, Packed(3, b"rows")), Delivery(2, 5, 9, Packed(1, b"columns", ARROW))]
    full = AttemptResult(
        TransactionAttempt(7, 2),
        Failure("bolt", 4, "no", "traceback", fatal=True),
        {3: PartitionBatch(Position(12), 5, 77, gave=False)},
        5,
        {9: DeferredTask(b"gathered", kept)},
        {("bolt", "count"): 3},  # type: ignore[dict-item]
        (SinkHandle("sink", "label", {"file": "part-1"}),),
    )
    return SlotReport(
        1, 2, b"12345678", [full, AttemptResult(TransactionAttempt(8, 1))], 0.5, {1: 4}, {(0, 1): b"87654321"}, {3}
    )


def test_a_report_comes_back_as_it_was_with_values_of_a_class_of_the_script() -> None:
    report = full_report()
    assert read_report(pack_report(report)) == report


def test_the_report_that_comes_back_had_something_in_every_field() -> None:
    for part in (full_report(), full_report().attempts[0]):
        for of in fields(part):
            default = of.default_factory() if of.default_factory is not MISSING else of.default
            assert getattr(part, of.name) != default, f"give {of.name} a value above: it may be lost on its way"
