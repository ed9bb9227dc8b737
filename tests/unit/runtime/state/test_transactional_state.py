"""State of user code, in running topologies: who may have it, whose it is, and what becomes of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from stormline import (
    BaseBatchBolt,
    Config,
    ICommitter,
    InProcessCluster,
    TransactionalState,
    TransactionAttempt,
)
from stormline.runtime.errors import Fenced, StateElsewhere, TopologyFailed
from stormline.runtime.state.memory_store import MemoryStateServer, MemoryStateStore
from stormline.runtime.state.transactional_state import STATE_KEY
from stormline.runtime.world.own_thread import CallAbandoned
from tests.kits.components import EVENTS, LEDGERS, Fault, Ledger, Store, eventually
from tests.kits.user_state import ID, ROWS, Notes, PositionsOfStorm, topology

LEDGER = "transactional-state"


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    yield LEDGERS[LEDGER]
    LEDGERS.pop(LEDGER, None)


def test_a_spout_that_keeps_its_positions_as_storms_executor_does_loses_and_doubles_nothing(ledger: Ledger) -> None:
    server, spout = MemoryStateServer(), PositionsOfStorm(batches=6)
    with InProcessCluster(server) as cluster:
        failing = topology(spout, ("store", Store(LEDGER, Fault("before", txid=3, attempts=1))))
        cluster.submit(failing, {"topology.max.spout.pending": 4}).await_drained(60)
    assert sorted(ledger.all()) == [(p, offset) for p in (0, 1) for offset in range(6 * ROWS)]
    assert ("again", 3, 0) in spout.emitted
    spout.batches = 8
    with InProcessCluster(server) as cluster:
        cluster.submit(topology(spout, ("store", Store(LEDGER)))).await_drained(60)
    assert sorted(ledger.all()) == [(p, offset) for p in (0, 1) for offset in range(8 * ROWS)]
    store = MemoryStateStore.open(server, "topo")
    assert (store.children("user"), store.get("coordinator/current/txid")) == (["0", "1"], 8)
    assert "1" not in store.children("user/0"), "cleanup_before was called"


class DeclaredNotes(Notes):
    """Executes on the executors, where its state can be made and not used."""

    gathers = ("count",)


@pytest.mark.parametrize("notes", [Notes(), DeclaredNotes()])
def test_a_committer_keeps_a_total_in_it(notes: Notes) -> None:
    server = MemoryStateServer()
    with InProcessCluster(server) as cluster:
        cluster.submit(topology(PositionsOfStorm(batches=5), ("notes", notes))).await_drained(60)
    assert MemoryStateStore.open(server, "topo").get("user/notes/count") == (5 * 2 * ROWS, 5)


@pytest.mark.parametrize("error", ["failed", "bug"])
def test_a_commit_that_ends_between_its_write_and_its_record_counts_once(error: str) -> None:
    server, spout = MemoryStateServer(), PositionsOfStorm(batches=5)
    with InProcessCluster(server) as cluster:
        handle = cluster.submit(topology(spout, ("notes", Notes(fault=Fault("after", txid=3, error=error)))))
        if error == "failed":
            handle.await_drained(60)
        else:
            with pytest.raises(TopologyFailed, match=r"ZeroDivisionError: on order in after"):
                handle.join(60)
            assert handle.txid_committed == 2
            cluster.submit(topology(spout, ("notes", Notes()))).await_drained(60)
    assert MemoryStateStore.open(server, "topo").get("user/notes/count") == (5 * 2 * ROWS, 5)


def test_topologies_of_one_process_and_one_id_have_each_their_own() -> None:
    servers = MemoryStateServer(), MemoryStateServer()
    with InProcessCluster(servers[0]) as one, InProcessCluster(servers[1]) as two:
        handles = [
            cluster.submit(topology(PositionsOfStorm(batches), ("notes", Notes())))
            for cluster, batches in ((one, 2), (two, 4))
        ]
        for handle in handles:
            handle.await_drained(60)
    totals = [MemoryStateStore.open(server, "topo").get("user/notes/count") for server in servers]
    assert totals == [(2 * 2 * ROWS, 2), (4 * 2 * ROWS, 4)]


def test_the_commit_of_a_driver_that_was_taken_over_writes_nothing_and_the_topology_says_so() -> None:
    server = MemoryStateServer()
    EVENTS.clear()
    with InProcessCluster(server) as cluster:
        handle = cluster.submit(topology(PositionsOfStorm(batches=5), ("notes", Notes(waits=True))))
        assert EVENTS["begun"].wait(20)
        server.vanish("topo")
        owner = MemoryStateStore.open(server, "topo")
        EVENTS["go on"].set()
        with pytest.raises(Fenced, match=r"topology 'topo': epoch 1 is over, epoch 2 owns the state"):
            handle.join(20)
    assert "notes" not in owner.children("user")


def test_a_coordinator_of_a_driver_that_was_taken_over_ends_it_as_such() -> None:
    server, spout = MemoryStateServer(), PositionsOfStorm(batches=2)
    with InProcessCluster(server) as cluster:
        handle = cluster.submit(topology(spout))
        handle.await_drained(20)
        server.vanish("topo")
        owner = MemoryStateStore.open(server, "topo")
        spout.batches = 3
        with pytest.raises(Fenced, match=r"topology 'topo': epoch 1 is over"):
            handle.join(20)
    assert owner.get("coordinator/current/txid") == 2


class HangsOnce(Notes):
    """Hangs in its first commit until the test lets it go on, and then writes all the same."""

    def finish_batch(self) -> None:
        if EVENTS["begun"].is_set():
            super().finish_batch()
            return
        EVENTS["begun"].set()
        assert EVENTS["go on"].wait(20)
        writes = (
            lambda: self.state.set_data("notes/count", 0),
            lambda: self.state.mkdir("late"),
            lambda: self.state.set_data("later", 1),
        )
        for write in writes:
            try:
                write()
            except CallAbandoned as error:
                REFUSED.append(str(error))
        EVENTS["came back"].set()


REFUSED: list[str] = []


def test_a_commit_that_outlived_its_deadline_writes_nothing_more_when_it_comes_back() -> None:
    server = MemoryStateServer()
    EVENTS.clear()
    REFUSED.clear()
    with InProcessCluster(server) as cluster:
        handle = cluster.submit(
            topology(PositionsOfStorm(batches=3), ("notes", HangsOnce())), {"topology.message.timeout.secs": 0.2}
        )
        eventually(lambda: handle.snapshot().replays)
        EVENTS["go on"].set()
        handle.await_drained(60)
        assert EVENTS["came back"].wait(20)
    assert REFUSED == ["this call took too long, and another attempt has its place: it writes nothing any more"] * 3
    store = MemoryStateStore.open(server, "topo")
    assert (store.get("user/notes/count"), "late" in store.children("user")) == ((3 * 2 * ROWS, 3), False)


class OnExecutors(BaseBatchBolt):
    """A bolt that does not commit."""

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        self.state = TransactionalState.new_user_state(conf, conf[ID])

    def execute(self, tup: Any) -> None: ...

    def finish_batch(self) -> None:
        self.state.set_data("a", 1)

    def declare_output_fields(self, declarer: Any) -> None: ...


def test_on_an_executor_one_sentence_says_where_it_is_kept() -> None:
    with InProcessCluster() as cluster:
        handle = cluster.submit(topology(PositionsOfStorm(batches=5), ("bolt", OnExecutors())))
        with pytest.raises(
            TopologyFailed,
            match=r"StateElsewhere in finish_batch of 'bolt', task \d+: TransactionalState is kept by the driver "
            r"process, and this code runs on an executor\. Use it in a coordinator, .*gathers.*in tuples \(transaction",
        ):
            handle.join(20)


@pytest.mark.parametrize("conf", [{}, Config(), None, {"topology.name": "x"}])
def test_a_conf_of_no_running_topology_is_refused(conf: Any) -> None:
    for new in (TransactionalState.new_user_state, TransactionalState.new_coordinator_state):
        with pytest.raises(StateElsewhere, match=r"needs the conf of a running topology, .* has no topology\."):
            new(conf, "topo", {})


def test_another_topologys_id_is_refused() -> None:
    with pytest.raises(StateElsewhere, match=r"of 'other' asked for in topology 'topo', which alone this driver owns"):
        TransactionalState.new_user_state({ID: "topo"}, "other")


@pytest.mark.parametrize("pid", [0, 1])
def test_a_process_that_does_not_run_the_topology_has_not_its_state(pid: int) -> None:
    spout = PositionsOfStorm(batches=1)
    with InProcessCluster() as cluster:
        handle = cluster.submit(topology(spout))
        handle.await_drained(20)
        conf = dict(spout.confs[0])
        assert TransactionalState.new_coordinator_state(conf, "topo").get_data("current/txid") == 1
        conf[STATE_KEY] = conf[STATE_KEY].replace(str(os.getpid()), str(pid))
        with pytest.raises(StateElsewhere, match=r"topology 'topo' asked for in a process that does not run it \(any"):
            TransactionalState.new_user_state(conf, "topo")


class KeepsConf(BaseBatchBolt):
    """Notes the conf that it was given."""

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        self.conf = conf

    def execute(self, tup: Any) -> None: ...

    def finish_batch(self) -> None:
        CONFS.append(dict(self.conf))

    def declare_output_fields(self, declarer: Any) -> None: ...


class CommitsConf(KeepsConf, ICommitter):
    """The same in the commit phase."""


CONFS: list[dict[str, Any]] = []


def test_every_conf_names_the_topology() -> None:
    CONFS.clear()
    spout = PositionsOfStorm(batches=1)
    with InProcessCluster() as cluster:
        bolts = ("bolt", KeepsConf()), ("committer", CommitsConf())
        cluster.submit_topology("a name", {"topology.name": "no"}, topology(spout, *bolts)).await_drained(20)
    assert len(CONFS) == 2
    assert len(spout.confs) == 3
    named = {(conf["topology.name"], conf[ID], conf.get("transactional.zookeeper.servers")) for conf in CONFS}
    assert named == {("a name", "topo", None)}
    assert {(conf["topology.name"], conf[ID]) for conf in spout.confs} == {("a name", "topo")}
    assert [STATE_KEY in conf for conf in spout.confs] == [True] * 3
    assert sorted(STATE_KEY in conf for conf in CONFS) == [False, True]
