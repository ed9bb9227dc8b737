"""Law 7 (one execution): Spark may run a task twice, and what is committed is of one execution. See docs/laws.md."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from stormline import BaseBatchBolt, Fields, TransactionalTopologyBuilder, TransactionAttempt
from stormline.runtime.cluster.in_process_engine import InProcessEngine
from stormline.runtime.commit.executor_messages import read_reply, split
from stormline.runtime.commit.executor_part import ExecutorPart
from stormline.runtime.messages.commit_request import CommitRequest
from stormline.runtime.messages.wave import Wave
from tests.laws.kit import drain, numbers, topology_of

RUNS = itertools.count()


class Marks(BaseBatchBolt):
    """Emits its tuples with a mark that is another one each time that it is prepared, for both tasks downstream."""

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        self.attempt, self.collector, self.mark = batch_id, collector, next(RUNS)
        self.rows: list[int] = []

    def execute(self, tup: Any) -> None:
        self.rows.append(tup[1])

    def finish_batch(self) -> None:
        for row in self.rows:
            self.collector.emit([self.attempt, (self.mark, row)])

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("id", "number"))


class Passes(Marks):
    """Emits its tuples as they are."""

    def finish_batch(self) -> None:
        for row in self.rows:
            self.collector.emit([self.attempt, row])


class RunsAgain(InProcessEngine):
    """Runs the first stage twice, once, as Spark does: one slot reads the first execution, the other the second."""

    mixed = False

    def _run_stage(self, wave: Wave, stage: int, given: Any) -> Iterator[tuple[int, bytes]]:
        first = list(super()._run_stage(wave, stage, given))
        if stage == 1 and not self.mixed:
            self.mixed = True
            second = list(super()._run_stage(wave, stage, given))
            first = [sent for sent in first if sent[0] % 2 == 0] + [sent for sent in second if sent[0] % 2 == 1]
        yield from first


def test_two_executions_of_one_spark_task_never_make_one_batch() -> None:
    committed: dict[int, list[tuple[int, int]]] = {}
    engines: list[RunsAgain] = []

    def make(env: Any) -> RunsAgain:
        engines.append(RunsAgain(env, 2))
        return engines[0]

    def declare(builder: TransactionalTopologyBuilder) -> None:
        builder.set_bolt("marks", Marks()).global_grouping("spout")
        builder.set_bolt("last", Passes(), 2).fields_grouping("marks", Fields("number"))

    def commit(attempt: TransactionAttempt, rows: list[Any]) -> None:
        committed[attempt.transaction_id] = [tuple(row) for row in rows]

    drain(topology_of(numbers(60, 20), commit, declare), None, make)
    assert engines[0].mixed
    assert sorted(row for rows in committed.values() for _, row in rows) == list(range(60))
    assert [len({mark for mark, _ in rows}) for rows in committed.values()] == [1, 1, 1], "of one execution each"


class CommitsAgain(InProcessEngine):
    """Runs each Spark task of a commit a second time, as Spark may; it then gives it a number above 0."""

    def __init__(self, env: Any) -> None:
        super().__init__(env, 2)
        self.refused = 0

    def commit(self, request: CommitRequest) -> list[bytes]:
        replies = super().commit(request)
        for sealed in split(request, 2):
            again = ExecutorPart(self._committing, sealed, 1)
            again.run()
            assert "may have run before (attempt number 1 of Spark's)" in str(read_reply(again.sealed_reply()).refusal)
            self.refused += 1
        return replies


def test_a_commit_that_spark_runs_again_calls_no_user_code() -> None:
    finished: list[TransactionAttempt] = []
    engines: list[CommitsAgain] = []

    def make(env: Any) -> CommitsAgain:
        engines.append(CommitsAgain(env))
        return engines[0]

    topology = topology_of(numbers(30), lambda attempt, rows: finished.append(attempt))
    drain(topology, None, make, topology__commit__placement="executors")
    assert engines[0].refused == 6
    assert [attempt.transaction_id for attempt in finished] == [1, 2, 3, 4, 5, 6], "each finished once"
