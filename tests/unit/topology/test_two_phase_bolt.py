"""What a two-phase bolt may be declared with."""

from __future__ import annotations

from typing import Any

import pytest

from stormline.bolts.two_phase_commit import TwoPhaseCommitBolt
from stormline.runtime.tasks.sink_turn import TaskSinkTurn
from stormline.topology.errors import InvalidComponent
from stormline.topology.fields import Fields
from stormline.topology.serialization import Registry
from stormline.topology.transaction_label import TransactionLabel
from stormline.topology.tuples import Tuple, TupleSource
from stormline.topology.two_phase_commit import CommitOutcome, Semantic, TwoPhaseCommitSink, takes_rows


class _Sink(TwoPhaseCommitSink):
    def begin_transaction(self, label: TransactionLabel) -> Any:
        return [label.text]

    def pre_commit(self, transaction: Any) -> Any:
        return transaction[0]

    def commit(self, handle: Any) -> CommitOutcome:
        return CommitOutcome.DONE if handle == "here" else CommitOutcome.ALREADY

    def abort(self, handle: Any) -> None:
        self.aborted = handle


def test_what_is_recovered_is_committed_and_aborted_as_ever_unless_the_sink_says_otherwise() -> None:
    """Most resources do not tell the two apart."""
    sink = _Sink()
    assert sink.recover_and_commit("here") is CommitOutcome.DONE
    sink.recover_and_abort("gone")
    assert sink.aborted == "gone"
    assert sink.list_prepared("x-") is None


@pytest.mark.parametrize(("call", "name"), [("invoke", "tuples"), ("invoke_batch", "record batches")])
def test_a_sink_that_lacks_the_call_for_its_rows_says_which(call: str, name: str) -> None:
    """A sink has one of them, as the bolt needs it."""
    with pytest.raises(NotImplementedError, match=rf"_Sink has no {call}\(transaction, \w+\), which {name} are given"):
        getattr(_Sink(), call)(None, None)


def test_the_class_of_a_sink_is_refused() -> None:
    """A frequent slip."""
    message = r"TwoPhaseCommitBolt got the class _Sink as its sink, expected an object of a kind of TwoPhaseCommitSink"
    with pytest.raises(InvalidComponent, match=message):
        TwoPhaseCommitBolt(_Sink)  # type: ignore[arg-type]
    with pytest.raises(InvalidComponent, match="got a str as its sink"):
        TwoPhaseCommitBolt("file")  # type: ignore[arg-type]


def test_a_semantic_can_be_named_by_its_text_and_others_are_refused() -> None:
    """It comes from configurations, too."""
    assert TwoPhaseCommitBolt(_Sink(), "at least once").semantic is Semantic.AT_LEAST_ONCE  # type: ignore[arg-type]
    message = r"semantic = 'twice', expected one of Semantic.EXACTLY_ONCE, Semantic.AT_LEAST_ONCE, Semantic.NONE"
    with pytest.raises(InvalidComponent, match=message):
        TwoPhaseCommitBolt(_Sink(), "twice")  # type: ignore[arg-type]


class _Kept(_Sink):
    def __init__(self) -> None:
        self.calls: list[Any] = []

    def invoke(self, transaction: Any, tup: Tuple) -> None:
        self.calls.append(tup.values)


class _KeptByRows(_Kept):
    def invoke_rows(self, transaction: Any, rows: Any, source: TupleSource) -> None:
        self.calls.append((rows, source.fields[1]))


class _Filtered(_KeptByRows):
    def invoke(self, transaction: Any, tup: Tuple) -> None:
        if tup.values[1] > 1:
            super().invoke(transaction, tup)


ROWS: list[list[Any]] = [["attempt", 1], ["attempt", 2]]
SOURCE = TupleSource("spout", "default", 1, Fields("tx", "n"))


def _turn(sink: TwoPhaseCommitSink) -> TaskSinkTurn:
    label = TransactionLabel("a-b", 1, 1, 1, 1, 1)
    return TaskSinkTurn("sink", sink, Semantic.EXACTLY_ONCE, label, Registry(), decided=False)


def test_a_sink_is_given_many_rows_at_once_where_it_takes_them() -> None:
    plain, by_rows = _Kept(), _KeptByRows()
    for sink in (plain, by_rows):
        _turn(sink).invoke_rows(ROWS, SOURCE)
    assert plain.calls == ROWS
    assert by_rows.calls == [(ROWS, "n")]


def test_a_subclass_that_overrides_invoke_alone_is_given_each_tuple() -> None:
    """Else what it says there would be gone past in silence."""
    sink = _Filtered()
    _turn(sink).invoke_rows(ROWS, SOURCE)
    assert sink.calls == [["attempt", 2]]
    assert [takes_rows(each) for each in (_Kept(), _KeptByRows(), _Filtered(), _Sink())] == [False, True, False, True]


def test_rows_are_invoked_one_by_one_unless_a_sink_says_otherwise() -> None:
    sink = _Kept()
    sink.invoke_rows(None, ROWS, SOURCE)
    assert sink.calls == ROWS


def test_a_bolt_that_overrides_execute_executes_each_tuple_of_many() -> None:
    class Filtering(TwoPhaseCommitBolt):
        def execute(self, tup: Tuple) -> None:
            if tup.values[1] > 1:
                super().execute(tup)

    kept = {}
    for kind in (TwoPhaseCommitBolt, Filtering):
        sink = kept[kind] = _KeptByRows()
        bolt = kind(sink)
        bolt.turn = _turn(sink)
        bolt.execute_rows(ROWS, SOURCE)
    assert kept[TwoPhaseCommitBolt].calls == [(ROWS, "n")]
    assert kept[Filtering].calls == [["attempt", 2]]
