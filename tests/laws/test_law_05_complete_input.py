"""Law 5 (complete input): a task finishes only with all its tuples, whatever is lost on their way. See docs/laws.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stormline import BaseBatchBolt, Fields, TransactionalTopologyBuilder, TransactionAttempt
from stormline.runtime.cluster.in_process_engine import InProcessEngine
from stormline.runtime.messages.wave import Wave
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.runtime.tuples import blocks
from stormline.topology.packing import msgpack
from tests.laws.kit import TIMEOUT_SECS, drain, numbers, running, topology_of

Sent = list[tuple[int, bytes]]
FINISHED: list[tuple[str, TransactionAttempt, int]] = []


class Passes(BaseBatchBolt):
    """Emits what it was given once it has all, and notes how much that was."""

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        self.name, self.attempt, self.collector = context.this_component_id, batch_id, collector
        self.rows: list[int] = []

    def execute(self, tup: Any) -> None:
        self.rows.append(tup[1])

    def finish_batch(self) -> None:
        FINISHED.append((self.name, self.attempt, len(self.rows)))
        for row in self.rows:
            self.collector.emit([self.attempt, row])

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("id", "number"))


class LosingEngine(InProcessEngine):
    """Loses a part of what is on its way to the last bolt, in the first wave."""

    def __init__(self, env: TaskEnvironment, lose: Callable[[Sent], Sent]) -> None:
        super().__init__(env, 2)
        self.lose = lose
        self.lost = 0

    def _run_stage(self, wave: Wave, stage: int, given: Sent) -> Iterator[tuple[int, bytes]]:
        for_bolt = [i for i, (_, block) in enumerate(given) if blocks.stage_of(block) == stage]
        if stage == 2 and self.lost == 0 and for_bolt:
            kept = self.lose([given[i] for i in for_bolt])
            self.lost = len(for_bolt) - len(kept) or 1
            given = [sent for i, sent in enumerate(given) if i not in for_bolt] + kept
        yield from super()._run_stage(wave, stage, given)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    FINISHED.clear()
    yield
    FINISHED.clear()


LOSSES: dict[str, Callable[[Sent], Sent]] = {
    "a block": lambda sent: sent[1:],
    "the end of a block": lambda sent: [(sent[0][0], sent[0][1][:-9]), *sent[1:]],
    "all blocks": lambda sent: [],
    "the blocks with tuples, not those with the counts": lambda sent: [s for s in sent if has_counts(s[1])],
    "the blocks with the counts, not those with tuples": lambda sent: [s for s in sent if not has_counts(s[1])],
}


def has_counts(block: bytes) -> bool:
    return msgpack.unpackb(block[1:], raw=False)[-1] is not None


@pytest.mark.parametrize("what", LOSSES)
def test_a_task_that_lacks_something_does_not_finish_and_the_batch_comes_again_whole(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1)  # so that tuples and counts are in blocks of their own
    committed: list[int] = []
    engines: list[LosingEngine] = []

    def make(env: TaskEnvironment) -> LosingEngine:
        engines.append(LosingEngine(env, LOSSES[what]))
        return engines[0]

    def declare(builder: TransactionalTopologyBuilder) -> None:
        builder.set_bolt("first", Passes(), 2).shuffle_grouping("spout")
        builder.set_bolt("last", Passes()).global_grouping("first")

    drain(topology_of(numbers(30, 10), lambda attempt, rows: committed.extend(rows), declare), None, make)
    assert engines[0].lost > 0
    assert sorted(committed) == list(range(30))
    assert {count for name, _, count in FINISHED if name == "last"} == {10}, "it never finished on less"
    assert len([1 for name, *_ in FINISHED if name == "first"]) > 2 * 3, "the batches came again"


class SilentEngine(InProcessEngine):
    """Loses the report of one slot, in the first wave."""

    silent = True

    def _run_stage(self, wave: Wave, stage: int, given: Sent) -> Iterator[tuple[int, bytes]]:
        for slot, block in super()._run_stage(wave, stage, given):
            if self.silent and blocks.stage_of(block) == blocks.FOR_DRIVER:
                self.silent = False
            else:
                yield slot, block


def test_without_the_report_of_every_slot_no_attempt_is_committed() -> None:
    committed: list[int] = []

    def declare(builder: TransactionalTopologyBuilder) -> None:
        builder.set_bolt("last", Passes(), 2).shuffle_grouping("spout")

    with running(
        topology_of(numbers(30, 10), lambda attempt, rows: committed.extend(rows), declare), None, SilentEngine
    ) as handle:
        handle.await_drained(TIMEOUT_SECS)
        assert handle.snapshot().replays > 0
    assert sorted(committed) == list(range(30))
    assert len(FINISHED) > 2 * 3, "the batches came again"
