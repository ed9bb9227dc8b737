"""One task of a bolt serves many attempts at once, each with a bolt of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pyarrow

from stormline import BaseBatchBolt, Fields, TransactionalTopologyBuilder, TransactionAttempt, compile_topology
from stormline.runtime.tasks.bolt_tasks import BatchBoltTask, begin_batch, execute_tuples
from stormline.runtime.tasks.collector import Output, TaskCollector
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.runtime.tuples.columns import Columns
from stormline.topology.contracts import IRowsBolt
from stormline.topology.tuples import TupleSource
from tests.kits.components import Counting
from tests.kits.spouts import PlainSpout, Ranges

A, A2, B = TransactionAttempt(1, 1), TransactionAttempt(1, 2), TransactionAttempt(2, 1)


class Caught:
    """A route that keeps what it takes."""

    def __init__(self) -> None:
        self.rows: list[Any] = []

    def take(self, rows: list[Any]) -> None:
        self.rows += rows

    def take_direct(self, task: int, row: Any) -> None: ...

    def flush(self) -> None: ...


class Hand:
    """Drives one task of a counting bolt by hand."""

    def __init__(self) -> None:
        builder = TransactionalTopologyBuilder("t", "spout", PlainSpout(Ranges("t", 1)))
        builder.set_bolt("count", Counting()).shuffle_grouping("spout")
        self.env = TaskEnvironment(compile_topology(builder.build_topology()), 1)
        self.caught = Caught()
        self.emitted = self.caught.rows
        self.tasks: dict[TransactionAttempt, BatchBoltTask] = {}

    def task(self, attempt: TransactionAttempt) -> BatchBoltTask:
        if attempt not in self.tasks:
            planned = self.env.plan.components["count"]
            declaration = planned.component.streams["default"]
            output = Output(declaration, [cast(Any, self.caught)])
            collector = TaskCollector(planned, planned.tasks[0], attempt, {"default": output})
            made = begin_batch(self.env, "count", planned.tasks[0], attempt, collector, lambda failure: None, False, 0)
            assert isinstance(made, BatchBoltTask)
            self.tasks[attempt] = made
        return self.tasks[attempt]

    def execute(self, attempt: TransactionAttempt) -> None:
        source = self.env.source(self.env.plan.edges[0], 1)
        assert self.task(attempt).execute_all([([[attempt, "value"]], source)])

    def finish(self, attempt: TransactionAttempt) -> Sequence[Any]:
        assert self.task(attempt).finish()
        return self.emitted.pop()


def test_attempts_that_take_turns_each_count_their_own_tuples() -> None:
    hand = Hand()
    for attempt in (A, A, A2, B, A):
        hand.execute(attempt)
    assert list(hand.finish(A)) == [A, 3]
    hand.execute(A2)
    assert list(hand.finish(B)) == [B, 1]
    assert list(hand.finish(A2)) == [A2, 2]
    assert hand.emitted == []


class _ByRows(BaseBatchBolt, IRowsBolt):
    def __init__(self) -> None:
        self.calls: list[Any] = []

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None: ...

    def execute(self, tup: Any) -> None:
        raise AssertionError("it is given many at once")

    def execute_rows(self, rows: Sequence[list[Any]], source: Any) -> None:
        self.calls.append((rows, source))

    def finish_batch(self) -> None: ...


def test_a_bolt_that_takes_rows_is_given_all_at_once_and_who_emitted_them() -> None:
    bolt, source, rows = _ByRows(), TupleSource("spout", "default", 1, Fields("id", "n")), [[A, 1], [A, 2]]
    execute_tuples(bolt, rows, source)
    execute_tuples(bolt, Columns(A, pyarrow.RecordBatch.from_pydict({"n": [3, 4]})), source)
    assert bolt.calls == [(rows, source), ([[A, 3], [A, 4]], source)]
