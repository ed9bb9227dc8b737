"""A coordinator is asked in a thread of its own, and what is ready soon begins."""

from __future__ import annotations

import sqlite3
import threading
import time
from typing import Any

import pytest

from stormline import ITransactionalSpout, TransactionalTopologyBuilder
from stormline.errors import TopologyFailed
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from stormline.runtime.state.memory_store import MemoryStateServer
from tests.kits.components import EVENTS, LEDGERS, Store, eventually
from tests.kits.spouts import PlainSpout, Ranges


class Slow:
    """Its `is_ready` takes time, as that of the tutorial that is copied most: it counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.threads = {threading.get_ident()}

    def is_ready(self) -> bool:
        self.asked += 1
        self.threads.add(threading.get_ident())
        time.sleep(0.1)
        return True

    def initialize_transaction(self, txid: int, prev_metadata: Any) -> Any:
        self.threads.add(threading.get_ident())
        return {"from": txid - 1, "to": txid}

    def close(self) -> None:
        self.threads.add(threading.get_ident())


class OfCoordinator(PlainSpout):
    def __init__(self, coordinator: Any) -> None:
        super().__init__(Ranges("t", batches=3))
        self.make = coordinator

    def get_coordinator(self, conf: Any, context: Any) -> Any:
        return self.make()


def build(spout: ITransactionalSpout) -> Any:
    builder = TransactionalTopologyBuilder("t", "spout", spout)
    builder.set_bolt("store", Store("t")).global_grouping("spout")
    return builder.build_topology()


def test_what_a_coordinator_that_sleeps_has_ready_begins_after_one_question() -> None:
    made: list[Slow] = []
    asked: list[int] = []

    def make() -> Slow:
        made.append(Slow())
        return made[-1]

    with InProcessCluster() as cluster:
        config = {"topology.max.spout.pending": 50}
        handle = cluster.submit_topology(
            "t", config, build(OfCoordinator(make)), on_wave=lambda snapshot: asked.append(made[0].asked)
        )
        handle.await_committed(3, 30)
    assert asked[0] <= 2, "the first wave has ended before the coordinator was asked for all that may be active"
    (slow,) = made
    assert len(slow.threads) == 1, "made, asked and closed in one thread"
    assert threading.get_ident() not in slow.threads


def test_a_coordinator_that_is_ready_at_once_fills_the_wave() -> None:
    waves: list[int] = []
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology(
            "t",
            {"topology.max.spout.pending": 20},
            build(PlainSpout(Ranges("t", batches=20, hesitant=False))),
            on_wave=lambda snapshot: waves.append(1),
        )
        handle.await_drained(30)
    assert len(waves) == 1


class HangsLater(Slow):
    def is_ready(self) -> bool:
        self.asked += 1
        if self.asked > 3:
            EVENTS["go on"].wait(20)
        return self.asked <= 3


def test_while_a_coordinator_does_not_answer_what_is_ready_commits_and_the_topology_can_be_stopped() -> None:
    EVENTS["go on"].clear()
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("t", {"topology.max.spout.pending": 3}, build(OfCoordinator(HangsLater)))
        handle.await_committed(3, 20)
        killing = threading.Thread(target=handle.kill)
        killing.start()
        eventually(lambda: handle._runner._stop_asked.is_set())
        EVENTS["go on"].set()
        killing.join()
    assert handle.error is None


class Connected(Slow):
    """Its connection belongs to the thread that made it."""

    def __init__(self) -> None:
        super().__init__()
        self.db = sqlite3.connect(":memory:")
        self.db.execute("CREATE TABLE begun (txid)")

    def is_ready(self) -> bool:
        return bool(self.db.execute("SELECT count(*) < 3 FROM begun").fetchone()[0])

    def initialize_transaction(self, txid: int, prev_metadata: Any) -> Any:
        self.db.execute("INSERT INTO begun VALUES (?)", (txid,))
        return {"from": txid - 1, "to": txid}

    def close(self) -> None:
        LEDGERS["t"].trail.append(self.db.execute("SELECT count(*) FROM begun").fetchone()[0])
        self.db.close()


def test_a_coordinator_may_hold_a_connection_of_its_thread() -> None:
    with InProcessCluster() as cluster:
        cluster.submit_topology("t", {}, build(OfCoordinator(Connected))).await_drained(20)
    assert LEDGERS["t"].trail[-1] == 3


def test_an_error_in_making_a_coordinator_is_the_submitters() -> None:
    def make() -> Any:
        raise ZeroDivisionError("as it is made")

    with InProcessCluster() as cluster, pytest.raises(ZeroDivisionError, match="as it is made"):
        cluster.submit_topology("t", {}, build(OfCoordinator(make)))


def test_an_error_of_a_coordinator_stops_the_topology_with_its_traceback() -> None:
    class Broken(Slow):
        def is_ready(self) -> bool:
            raise ZeroDivisionError("as it is asked")

    with (
        InProcessCluster() as cluster,
        pytest.raises(TopologyFailed, match=r"(?s)Traceback.*in is_ready.*as it is asked"),
    ):
        cluster.submit_topology("t", {}, build(OfCoordinator(Broken))).await_committed(1, 20)


class Pops:
    """Takes what defines a batch out of a queue: what it was asked for once is nowhere else."""

    queue: list[int]

    def is_ready(self) -> bool:
        return bool(self.queue)

    def initialize_transaction(self, txid: int, prev_metadata: Any) -> Any:
        if txid == 3 and "second driver" not in LEDGERS["t"].trail:
            self.at_third()
        first = self.queue.pop(0)
        return {"from": first, "to": first + 1}

    def at_third(self) -> None:
        raise ZeroDivisionError("at the third")


class StaysAtThird(Pops):
    def at_third(self) -> None:
        EVENTS["at the third"].set()
        EVENTS["go on"].wait(20)


def run_on(server: MemoryStateServer, kind: Any) -> None:
    LEDGERS["t"].trail.append("second driver")
    with InProcessCluster(server) as cluster:
        cluster.submit(build(OfCoordinator(kind))).await_drained(20)
    assert sorted(offset for _, offset in LEDGERS["t"].all()) == list(range(5))


def test_what_was_begun_before_an_error_of_the_coordinator_is_not_lost() -> None:
    Pops.queue, server = list(range(5)), MemoryStateServer()
    with InProcessCluster(server) as cluster, pytest.raises(TopologyFailed, match="at the third"):
        cluster.submit(build(OfCoordinator(Pops)), {"topology.max.spout.pending": 5}).await_committed(3, 20)
    run_on(server, Pops)


def test_what_a_coordinator_begins_while_the_topology_stops_is_not_lost() -> None:
    for name in ("at the third", "go on"):
        EVENTS[name].clear()
    Pops.queue, server = list(range(5)), MemoryStateServer()
    with InProcessCluster(server) as cluster:
        handle = cluster.submit(build(OfCoordinator(StaysAtThird)), {"topology.max.spout.pending": 5})
        assert EVENTS["at the third"].wait(20)
        killing = threading.Thread(target=handle.kill)
        killing.start()
        eventually(lambda: handle._runner._waves.thread.is_alive() is False)
        EVENTS["go on"].set()
        killing.join()
    run_on(server, StaysAtThird)


class Kills(Slow):
    """Its coordinator stops its own topology, as do its emitters."""

    def is_ready(self) -> bool:
        return bool(HANDLES)

    def initialize_transaction(self, txid: int, prev_metadata: Any) -> Any:
        self.kill("coordinator")
        return super().initialize_transaction(txid, prev_metadata)

    def emit_batch(self, attempt: Any, metadata: Any, collector: Any) -> None:
        self.kill("emitter")

    def kill(self, who: str) -> None:
        if who in LEDGERS["t"].trail:
            HANDLES[0].kill()
            LEDGERS["t"].trail.append("came back")


HANDLES: list[Any] = []


class Killed(OfCoordinator):
    emits_on_executors = False

    def get_emitter(self, conf: Any, context: Any) -> Any:
        return self.make()


@pytest.mark.parametrize("who", ["coordinator", "emitter"])
def test_a_spout_may_stop_its_own_topology(who: str) -> None:
    LEDGERS["t"].trail.append(who)
    HANDLES.clear()
    with InProcessCluster() as cluster:
        handle = cluster.submit(build(Killed(Kills)))
        HANDLES.append(handle)
        handle.join(10)
    assert "came back" in LEDGERS["t"].trail
