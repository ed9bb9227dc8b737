"""What an operator does to a topology between two runs: state that is set back, a fence edited, another graph."""

from __future__ import annotations

import copy
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from examples import flight_delays
from stormline import (
    BaseTransactionalBolt,
    FailedException,
    ICommitter,
    IOpaquePartitionedTransactionalSpout,
    IPartitionedTransactionalSpout,
    TransactionalTopologyBuilder,
    TransactionAttempt,
    Tuple,
)
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from stormline.runtime.errors import MixedVersions, TooManyAttempts, TopologyChanged, TopologyFailed
from stormline.runtime.spark.worker import StageTask
from stormline.runtime.state.memory_store import MemoryStateServer
from tests.kits.components import LEDGERS, line, numbers
from tests.kits.own_emitter import OwnEmitter


class Flights:
    """examples.flight_delays on small files, its state in memory, its database a SQLite file."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.database = directory / "flights.sqlite"
        self.server = MemoryStateServer()

    def land(self, name: str, flights: int) -> None:
        """Let a file of flights arrive."""
        rows = "\n".join(["UA,1,JFK,9"] * flights)
        (self.directory / f"{name}.csv").write_text(f"carrier,dep_delay,origin,hour\n{rows}\n")

    def run(self) -> int:
        """Let a driver commit all there is; return the last txid."""
        with InProcessCluster(self.server) as cluster:
            handle = cluster.submit_topology("flights", flight_delays.config, flight_delays.topology())
            return handle.await_drained(20)

    def snapshot(self) -> Callable[[], None]:
        """Return what sets the state back to what it is now."""
        state = self.server.topologies[flight_delays.TOPOLOGY_ID]
        kept = (state.epoch, state.description, copy.copy(state.nodes))

        def restore() -> None:
            state.epoch, state.description, nodes = kept
            state.nodes = copy.copy(nodes)

        return restore

    def stored(self) -> list[str]:
        with closing(sqlite3.connect(self.database)) as db:
            return list(db.iterdump())


@pytest.fixture
def flights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Flights:
    monkeypatch.setenv("FLIGHT_DELAYS_CSV", str(tmp_path / "*.csv"))
    monkeypatch.setenv("FLIGHT_DELAYS_STORE", f"sqlite:{tmp_path / 'flights.sqlite'}")
    monkeypatch.setattr(flight_delays, "ROWS_PER_BATCH", 10)
    return Flights(tmp_path)


@pytest.mark.parametrize("lives_between", [0, 3])
def test_a_state_set_back_by_transactions_is_refused_by_the_databases_fence_whatever_its_epoch(
    flights: Flights, lives_between: int
) -> None:
    """The epoch is set back too, so tokens come again; and each refused driver raises it, past the fence's."""
    flights.land("a", 30)
    assert flights.run() == 3
    restore = flights.snapshot()
    for _ in range(lives_between):
        flights.run()
    flights.land("b", 30)
    assert flights.run() == 6
    before = flights.stored()
    restore()
    # Where 4 to 6 became durable together the fence knows the commit id of each.
    message = r"holds transaction [46] of topology .*(, and this is transaction 4|under another commit id)"
    for _ in range(lives_between + 3):
        with pytest.raises(TopologyFailed, match=message):
            flights.run()
    assert flights.stored() == before


SET_BACK_BY_ONE = r"holds transaction 4 of topology .*(under another commit id|, and this is transaction 4 of epoch)"


@pytest.mark.parametrize("rows", [5, 10])
def test_a_state_set_back_by_the_last_transaction_is_refused_whether_its_batch_comes_out_the_same_or_not(
    flights: Flights, rows: int
) -> None:
    """The fence holds this very transaction, but under another commit id."""
    flights.land("a", 30)
    assert flights.run() == 3
    restore = flights.snapshot()
    flights.land("b", 5)
    assert flights.run() == 4
    before = flights.stored()
    restore()
    flights.land("b", rows)
    for _ in range(3):  # from the second run on the new batch is stored, as one of which effects may have happened
        with pytest.raises(TopologyFailed, match=SET_BACK_BY_ONE):
            flights.run()
    assert flights.stored() == before


def test_a_fence_that_somebody_set_to_a_later_transaction_stops_the_topology_and_stays(flights: Flights) -> None:
    flights.land("a", 30)
    assert flights.run() == 3
    with closing(sqlite3.connect(flights.database)) as db, db:
        db.execute("UPDATE stormline_fence SET txid = 99")
    before = flights.stored()
    flights.land("b", 30)
    with pytest.raises(TopologyFailed, match=r"holds transaction 99 of topology .*, and this is transaction 4"):
        flights.run()
    assert flights.stored() == before


class StoreByValue(BaseTransactionalBolt, ICommitter):
    """Stores each value with its txid beside it; in the first run the last task fails, after others have stored."""

    def __init__(self, fails: bool) -> None:
        self.fails = fails

    def prepare(self, conf: Any, context: Any, collector: Any, attempt: TransactionAttempt) -> None:
        self.context, self.attempt = context, attempt
        self.values: list[Any] = []

    def execute(self, tup: Tuple) -> None:
        self.values.append(tup[1])

    def finish_batch(self) -> None:
        last = self.context.component_tasks("store")[-1] == self.context.this_task_id
        if self.fails and last and self.attempt.transaction_id == 2:
            raise FailedException("no room")
        for value in self.values:
            LEDGERS["t"].apply(str(value), self.attempt.transaction_id, [value])


def test_a_graph_redeployed_while_a_commit_was_half_done_needs_permission_and_then_counts_once() -> None:
    """With the txid beside each value it does not matter which task stores it."""

    def topology(tasks: int, fails: bool) -> Any:
        store = StoreByValue(fails)
        return line(
            "t", numbers(40), 5, lambda b: b.set_bolt("store", store, tasks).fields_grouping("spout", ["value"])
        )

    config = {"topology.max.spout.pending": 4, "topology.max.batch.attempts": 2}
    server = MemoryStateServer()
    with InProcessCluster(server) as cluster:
        handle = cluster.submit_topology("t", config, topology(2, fails=True))
        with pytest.raises(TooManyAttempts, match="no room"):
            handle.await_drained(20)
        assert handle.txid_committed == 1
    assert 2 in LEDGERS["t"].applied, "a part of transaction 2 has been stored"
    with InProcessCluster(server) as cluster:
        with pytest.raises(TopologyChanged, match=r"bolt 'store'.*parallelism.*2.*3"):
            cluster.submit_topology("t", config, topology(3, fails=False))
        handle = cluster.submit_topology("t", config, topology(3, fails=False), allow_changed_topology=True)
        handle.await_drained(20)
    assert sorted(LEDGERS["t"].all()) == list(range(40))


class Reader(OwnEmitter):
    """A spout of one partition, whose position is the number of rows that it has given. Subclasses say its kind."""

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def is_ready_after(self, positions: Any, batches_ahead: int) -> bool:
        return int(positions.get(0) or 0) + batches_ahead < self.rows

    def num_partitions(self) -> int:
        return 1

    def give(self, attempt: TransactionAttempt, collector: Any, last: int | None) -> int:
        collector.emit([attempt, last or 0])
        return (last or 0) + 1


class PartitionedReader(Reader, IPartitionedTransactionalSpout):
    def emit_partition_batch_new(self, attempt: TransactionAttempt, collector: Any, partition: int, last: Any) -> Any:
        return self.give(attempt, collector, last)

    def emit_partition_batch(self, attempt: TransactionAttempt, collector: Any, partition: int, metadata: Any) -> None:
        self.give(attempt, collector, metadata - 1)


class OpaqueReader(Reader, IOpaquePartitionedTransactionalSpout):
    def emit_partition_batch(self, attempt: TransactionAttempt, collector: Any, partition: int, last: Any) -> Any:
        return self.give(attempt, collector, last)


@pytest.mark.parametrize(("before", "now"), [(PartitionedReader, OpaqueReader), (OpaqueReader, PartitionedReader)])
def test_a_spout_of_another_kind_goes_on_where_the_old_one_has_committed_all_and_not_before(
    before: Any, now: Any
) -> None:
    def topology(spout: Any, fails: bool = False) -> Any:
        builder = TransactionalTopologyBuilder("t", "spout", spout)
        builder.set_bolt("store", StoreByValue(fails)).fields_grouping("spout", ["value"])
        return builder.build_topology()

    config = {"topology.max.spout.pending": 3, "topology.max.batch.attempts": 2}
    server = MemoryStateServer()
    with InProcessCluster(server) as cluster:
        handle = cluster.submit_topology("t", config, topology(before(4), fails=True))
        with pytest.raises(TooManyAttempts, match="no room"):
            handle.await_drained(20)
    with InProcessCluster(server) as cluster:
        with pytest.raises(
            TopologyChanged, match=r"^the spout of topology 't' .* was a .* and is now a .*not committed \(2 to"
        ):
            cluster.submit_topology("t", config, topology(now(8)), allow_changed_topology=True)
        assert cluster.submit_topology("t", config, topology(before(4))).await_drained(20) == 4
    with InProcessCluster(server) as cluster:
        handle = cluster.submit_topology("t", config, topology(now(8)), allow_changed_topology=True)
        assert handle.await_drained(20) == 8
    assert sorted(LEDGERS["t"].all()) == list(range(8))


def test_another_version_on_an_executor_is_refused_before_anything_runs() -> None:
    payload: Any = None
    task = StageTask("0.0.1", "run", payload, b"", 0, 1, frozenset(), ())
    with pytest.raises(MixedVersions, match=r"the driver runs stormline 0\.0\.1, this executor \d.*; install one of"):
        next(iter(task(0, [])))
