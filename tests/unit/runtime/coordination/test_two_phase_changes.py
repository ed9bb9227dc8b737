"""What becomes of two-phase transactions where bolts come to a topology, or leave it."""

from __future__ import annotations

from typing import Any

import pytest

from stormline import (
    BaseTransactionalBolt,
    Fields,
    InProcessCluster,
    MemoryTransactionalSpout,
    TransactionalTopologyBuilder,
    TwoPhaseCommitBolt,
)
from stormline.runtime.errors import SinkMissing, TopologyChanged, TopologyFailed
from stormline.runtime.state.memory_store import MemoryStateServer
from tests.kits.components import LEDGERS, Fault, Store
from tests.kits.two_phase import SWEPT, dies, dies_with_undecided, fresh, settled, sunk, txid_of


def test_a_bolt_that_comes_to_a_topology_writes_the_batch_that_is_decided_too() -> None:
    """Nothing of it is on record: it would lack the rows of one transaction, and nobody would be told."""
    sink, added, server = fresh("decided"), fresh("added"), MemoryStateServer()
    sink.script.on("commit", 2, lambda: server.vanish("t"))
    dies(server, sunk(sink, tasks=1))

    def beside(builder: Any) -> None:
        builder.set_bolt("added", TwoPhaseCommitBolt(added)).shuffle_grouping("spout")
        store = Store("joins", Fault("after", 2, attempts=1))
        builder.set_bolt("store", store).global_grouping("spout")

    LEDGERS.pop("joins", None)
    with InProcessCluster(server) as cluster:
        topology = sunk(sink, tasks=1, beside=beside)
        cluster.submit_topology("t", SWEPT, topology, allow_changed_topology=True).await_drained(60)
    settled(sink)
    assert [txid_of(label) for label in added.committed] == [2, 3, 4, 5]
    assert sorted(added.rows) == sorted(sink.rows)[4:]
    assert sink.script.asked("pre_commit").count(2) == added.script.asked("pre_commit").count(2) == 1
    assert added.prepared == []


def test_a_decided_transaction_of_a_bolt_that_is_gone_stops_the_topology() -> None:
    """Nobody could commit it; the remedy is to declare it as it was."""
    sink, server = fresh("gone"), MemoryStateServer()
    sink.script.on("commit", 2, lambda: server.vanish("t"))
    topology = sunk(sink, tasks=1)
    dies(server, topology)

    class Swallows(BaseTransactionalBolt):
        def execute(self, tup: Any) -> None:
            pass

        def finish_batch(self) -> None:
            pass

    rows = {p: [[n] for n in range(p, 20, 2)] for p in range(2)}
    builder = TransactionalTopologyBuilder("t", "spout", MemoryTransactionalSpout(rows, Fields("n"), 2))
    builder.set_bolt("sink", Swallows(), 1).shuffle_grouping("spout")
    with InProcessCluster(server) as cluster:
        with pytest.raises(TopologyChanged, match="What bolt 'sink' has prepared in its sink and not committed stays"):
            cluster.submit_topology("t", SWEPT, builder.build_topology())
        handle = cluster.submit_topology("t", SWEPT, builder.build_topology(), allow_changed_topology=True)
        message = (
            "a two-phase transaction of bolt 'sink' is stored, and topology 't' has no such bolt any more, or not as a "
            "TwoPhaseCommitBolt: nobody could commit or abort it. Declare it as it was until the transaction is "
            "committed, and change it then"
        )
        with pytest.raises(TopologyFailed) as stopped:
            handle.await_drained(60)
    assert SinkMissing.__name__ in str(stopped.value)
    assert message in str(stopped.value)
    with InProcessCluster(server) as cluster:
        cluster.submit_topology("t", SWEPT, topology, allow_changed_topology=True).await_drained(60)
    settled(sink)


def test_what_a_bolt_that_is_gone_has_prepared_is_told_of_and_aborted_where_it_comes_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Of later transactions than the decided one: they are withdrawn, and nobody could abort them."""
    sink, gone, server = fresh("stays"), fresh("gone"), MemoryStateServer()

    def beside(builder: TransactionalTopologyBuilder) -> None:
        builder.set_bolt("gone", TwoPhaseCommitBolt(gone), 1).shuffle_grouping("spout")

    with_it = sunk(sink, tasks=1, beside=beside)
    undecided = dies_with_undecided(server, with_it, sink, gone)
    with InProcessCluster(server) as cluster:
        handle = cluster.submit_topology("t", SWEPT, sunk(sink, tasks=1), allow_changed_topology=True)
        with pytest.raises(TopologyFailed, match="SinkMissing"):
            handle.await_drained(60)
    told = [record.getMessage() for record in caplog.records if "stays prepared, with its locks" in record.message]
    assert told == [
        f"{label} stays prepared, with its locks: the topology has no bolt 'gone' any more that could abort it. Abort "
        f"it with the module as it was, by `stormline transactions abort MODULE {label} --stopped`"
        for label in undecided
    ]
    with InProcessCluster(server) as cluster:
        cluster.submit_topology("t", SWEPT, with_it, allow_changed_topology=True).await_drained(60)
    settled(sink)
    settled(gone)
    assert not set(undecided) & set(gone.committed)
