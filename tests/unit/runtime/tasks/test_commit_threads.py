"""A committer's tasks run in the driver, each in one thread for as long as the topology runs."""

from __future__ import annotations

import sqlite3
import threading
from typing import Any, ClassVar

import pytest

from stormline import BaseTransactionalBolt, ICommitter, Tuple
from stormline.errors import TopologyFailed
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from tests.kits.components import EVENTS, LEDGERS, Basic, StoreAtCommit, eventually, line, numbers


class IntoOwnConnection(BaseTransactionalBolt, ICommitter):
    """Keeps a connection a task in its class, opened by the first batch: it belongs to the thread that made it."""

    connections: ClassVar[dict[int, sqlite3.Connection]] = {}
    threads: ClassVar[dict[int, set[int]]] = {}

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        self.task, self.txid = context.this_task_id, batch_id.transaction_id
        if self.task not in self.connections:
            self.connections[self.task] = sqlite3.connect(":memory:")
            self.connections[self.task].execute("CREATE TABLE numbers (number, txid)")
        self.threads.setdefault(self.task, set()).add(threading.get_ident())

    def execute(self, tup: Tuple) -> None:
        self.connections[self.task].execute("INSERT INTO numbers VALUES (?, ?)", (tup[1], self.txid))

    def finish_batch(self) -> None:
        (count,) = self.connections[self.task].execute("SELECT count(*) FROM numbers").fetchone()
        LEDGERS["t"].values[str(self.task)] = (self.txid, [count])

    def declare_output_fields(self, declarer: Any) -> None: ...


@pytest.mark.parametrize("tasks", [1, 3])
def test_what_a_task_keeps_from_batch_to_batch_is_used_in_the_thread_that_made_it(tasks: int) -> None:
    IntoOwnConnection.connections, IntoOwnConnection.threads = {}, {}
    built = line("t", numbers(60), 5, lambda b: b.set_bolt("x", IntoOwnConnection(), tasks).shuffle_grouping("spout"))
    with InProcessCluster() as cluster:
        cluster.submit_topology("t", {"topology.max.spout.pending": 2}, built).await_drained(20)
    assert sum(LEDGERS["t"].all()) == 60
    assert [len(threads) for threads in IntoOwnConnection.threads.values()] == [1] * tasks


class OwnThreadBasic(Basic):
    threads: ClassVar[set[int]] = set()

    def prepare(self, conf: Any, context: Any) -> None:
        self.threads.add(threading.get_ident())

    def execute(self, tup: Tuple, collector: Any) -> None:
        self.threads.add(threading.get_ident())
        super().execute(tup, collector)

    def cleanup(self) -> None:
        self.threads.add(threading.get_ident())


def test_a_basic_bolt_downstream_of_a_committer_is_prepared_called_and_cleaned_up_in_one_thread() -> None:
    OwnThreadBasic.threads = set()
    built = line(
        "t",
        numbers(20),
        5,
        lambda b: b.set_bolt("x", StoreAtCommit("t")).global_grouping("spout"),
        lambda b: b.set_bolt("basic", OwnThreadBasic()).global_grouping("x"),
    )
    with InProcessCluster() as cluster:
        cluster.submit_topology("t", {}, built).await_drained(20)
    assert len(OwnThreadBasic.threads) == 1
    eventually(lambda: not [t for t in threading.enumerate() if t.name.startswith("stormline-commit-")])


class Interrupted(StoreAtCommit):
    """Its first task ends as by Ctrl-C, while the others finish."""

    def finish_batch(self) -> None:
        if self.context.this_task_index == 0:
            raise KeyboardInterrupt
        EVENTS["never"].wait(0.3)
        super().finish_batch()


def test_all_tasks_have_come_back_before_the_topology_ends_whatever_one_of_them_raises() -> None:
    built = line("t", numbers(20), 5, lambda b: b.set_bolt("x", Interrupted("t"), 3).shuffle_grouping("spout"))
    with InProcessCluster() as cluster, pytest.raises(TopologyFailed, match="KeyboardInterrupt"):
        cluster.submit_topology("t", {}, built).await_drained(20)
    assert len(LEDGERS["t"].finished) == 2


class Killing(StoreAtCommit):
    """Stops its topology as it commits transaction 2."""

    def finish_batch(self) -> None:
        super().finish_batch()
        if self.attempt.transaction_id == 2:
            eventually(lambda: HANDLES)
            HANDLES[0].kill()


HANDLES: list[Any] = []


@pytest.mark.parametrize("tasks", [1, 3])
def test_a_committer_may_stop_its_own_topology_which_ends_after_its_commit(tasks: int) -> None:
    HANDLES.clear()
    built = line("t", numbers(20), 5, lambda b: b.set_bolt("x", Killing("t"), tasks).shuffle_grouping("spout"))
    with InProcessCluster() as cluster:
        HANDLES.append(cluster.submit(built, {"topology.max.spout.pending": 1}))
        assert HANDLES[0].join(20) == 2
    assert set(LEDGERS["t"].applied) == {1, 2}
