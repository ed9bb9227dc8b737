"""What every running topology must do, on any engine: one suite for the in-process double and for Spark."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from stormline import Config, FailedException, Fields, StormlineError, TransactionalTopologyBuilder
from tests.kits.components import (
    LEDGERS,
    NO_FAULT,
    SUMS,
    Basic,
    Batch,
    CommittingTrail,
    Counting,
    Fault,
    Ledger,
    Store,
    StoreWithLock,
    SumsIntoModule,
    Trail,
    eventually,
    line,
    numbers,
)
from tests.kits.spouts import ChangingOpaqueSpout, CommitterSpout, PartitionedSpout, PlainSpout, Ranges

PENDING_4 = {"topology.max.spout.pending": 4}


def new_id() -> str:
    return "t-" + uuid.uuid4().hex[:12]


class RunningContract:
    """Needs a fixture `cluster` with `submit_topology`."""

    @pytest.fixture
    def name(self) -> Iterator[str]:
        made = new_id()
        yield made
        LEDGERS.pop(made, None)

    def drain(self, cluster: Any, topology: Any, config: Any = None) -> Any:
        handle = cluster.submit_topology(topology.id, config or PENDING_4, topology)
        handle.await_drained(60)
        return handle

    def finish(self, handle: Any) -> Ledger:
        handle.kill()
        assert handle.error is None
        return LEDGERS[handle.name]

    # -------------------------------------------------------------------------------- the good run

    def test_every_tuple_counts_once_and_commits_are_in_order(self, cluster: Any, name: str) -> None:
        topology = line(
            name,
            numbers(100, 3),
            5,
            lambda b: b.set_bolt("basic", Basic(), 3).shuffle_grouping("spout"),
            lambda b: b.set_bolt("batch", Batch(), 2).fields_grouping("basic", ["value"]),
            lambda b: b.set_bolt("store", Store(name), 2).fields_grouping("batch", ["value"]),
            parallelism=3,
        )
        handle = self.drain(cluster, topology)
        ledger = self.finish(handle)
        assert sorted(ledger.all()) == list(range(100))
        txids = [attempt.transaction_id for attempt in ledger.finished]
        assert txids == sorted(txids)
        assert set(txids) == set(range(1, 8))
        assert handle.txid_committed == 7
        snapshot = handle.snapshot()
        assert (snapshot.transactions, snapshot.tuples, snapshot.replays) == (7, 100, 0)

    def test_every_task_finishes_every_batch_with_no_tuples_too(self, cluster: Any, name: str) -> None:
        topology = line(
            name,
            {0: [1, 2, 3]},
            1,
            lambda b: b.set_bolt("count", Counting(), 4).global_grouping("spout"),
            lambda b: b.set_bolt("store", Store(name)).global_grouping("count"),
        )
        self.drain(cluster, topology)
        assert sorted(LEDGERS[name].all()) == [0] * 9 + [1] * 3

    def test_the_seed_example_finishes_in_the_right_phases(self, cluster: Any, name: str) -> None:
        topology = line(
            name,
            {0: [1, 2]},
            1,
            lambda b: b.set_bolt("A", Batch()).shuffle_grouping("spout"),
            lambda b: b.set_bolt("B", CommittingTrail(name, "B")).shuffle_grouping("A"),
            lambda b: b.set_bolt("C", Trail(name, "C")).shuffle_grouping("A").shuffle_grouping("B"),
            lambda b: b.set_bolt("D", CommittingTrail(name, "D"), 2).all_grouping("C"),
        )
        self.drain(cluster, topology)
        assert LEDGERS[name].trail == [
            (1, "B", ["1"]),
            (1, "C", ["1", "B"]),
            (1, "D", ["C"]),
            (1, "D", ["C"]),
            (2, "B", ["2"]),
            (2, "C", ["2", "B"]),
            (2, "D", ["C"]),
            (2, "D", ["C"]),
        ]

    def test_rows_and_partitions_that_appear_while_it_runs_are_taken(self, cluster: Any, name: str) -> None:
        rows: dict[int, list[Any]] = {0: ["a"], 1: []}
        topology = line(name, rows, 2, lambda b: b.set_bolt("store", Store(name)).shuffle_grouping("spout"))
        handle = self.drain(cluster, topology)
        assert handle.txid_committed == 1
        rows[1].append("b")
        rows[2] = ["c", "d", "e"]
        handle.await_drained(60)
        assert sorted(LEDGERS[name].all()) == ["a", "b", "c", "d", "e"]
        assert handle.txid_committed == 3

    def test_nothing_left_means_not_ready_and_no_empty_batches(self, cluster: Any, name: str) -> None:
        topology = line(name, {0: []}, 2, lambda b: b.set_bolt("store", Store(name)).shuffle_grouping("spout"))
        handle = self.drain(cluster, topology)
        assert handle.txid_committed == 0

    # -------------------------------------------------------------------------------- failing and replaying

    @pytest.mark.parametrize("where", ["prepare", "execute", "finish_batch"])
    def test_failed_in_a_batch_bolt_replays(self, cluster: Any, name: str, where: str) -> None:
        self.check_replay(cluster, name, lambda b: b.set_bolt("x", Batch(Fault(where))).shuffle_grouping("spout"))

    def test_failed_in_a_basic_bolt_replays(self, cluster: Any, name: str) -> None:
        self.check_replay(cluster, name, lambda b: b.set_bolt("x", Basic(Fault("execute"))).shuffle_grouping("spout"))

    @pytest.mark.parametrize("where", ["prepare", "execute", "before", "after"])
    def test_failed_in_a_committer_replays_and_counts_once(self, cluster: Any, name: str, where: str) -> None:
        self.check_replay(
            cluster, name, lambda b: b.set_bolt("x", Batch()).shuffle_grouping("spout"), Fault(where, attempts=3)
        )
        commit_ids = [commit_id for ids in LEDGERS[name].commit_ids.values() for commit_id in ids]
        assert len(set(commit_ids)) == len(commit_ids) == 4, "each transaction has one, whichever attempt commits"

    def check_replay(self, cluster: Any, name: str, bolt: Any, fault: Fault = NO_FAULT) -> None:
        topology = line(
            name,
            numbers(40),
            5,
            bolt,
            lambda b: b.set_bolt("store", Store(name, fault), 2).fields_grouping("x", ["value"]),
        )
        handle = self.drain(cluster, topology)
        ledger = self.finish(handle)
        assert sorted(ledger.all()) == list(range(40))
        assert handle.snapshot().replays >= 1
        attempts = {attempt.transaction_id: attempt.attempt_id for attempt in ledger.finished}
        assert attempts[1] == 1, "earlier ones are untouched"
        assert attempts[2] == attempts[3] == attempts[4] == 1 + max(fault.attempts, 1)

    @pytest.mark.parametrize("spout", [PlainSpout, PartitionedSpout])
    def test_failed_in_an_emitter_replays(self, cluster: Any, name: str, spout: Any) -> None:
        ledger = self.drain_ranges(cluster, name, spout, Ranges(name, batches=4, fault=Fault("emit", attempts=2)))
        txids = [attempt.transaction_id for attempt in ledger.finished]
        assert txids == sorted(txids)

    @pytest.mark.parametrize("where", ["is_ready", "initialize"])
    def test_failed_in_a_coordinator_means_asked_again_later(self, cluster: Any, name: str, where: str) -> None:
        ledger = self.drain_ranges(cluster, name, PlainSpout, Ranges(name, batches=4, fault=Fault(where, attempts=3)))
        begun = [entry for entry in ledger.trail if entry[0] == "initialize"]
        tries = 4 if where == "initialize" else 1
        assert [entry[1] for entry in begun] == [1] + [2] * tries + [3, 4]

    def drain_ranges(self, cluster: Any, name: str, spout: Any, ranges: Ranges, batches: int = 4) -> Ledger:
        builder = TransactionalTopologyBuilder(name, "spout", spout(ranges), 2)
        builder.set_bolt("store", Store(name)).global_grouping("spout")
        handle = cluster.submit_topology(name, PENDING_4, builder.build_topology())
        handle.await_committed(batches, 60)
        ledger = self.finish(handle)
        offsets = sorted(value[1:] for value in ledger.all())
        if spout is PartitionedSpout:
            assert offsets == [(p, o) for p in range(2) for o in range(3 * batches)]
        else:
            assert offsets == [(o,) for o in range(3 * batches)]
        return ledger

    def test_a_transaction_is_initialized_once_in_order_with_the_metadata_before_it(
        self, cluster: Any, name: str
    ) -> None:
        ledger = self.drain_ranges(cluster, name, PlainSpout, Ranges(name, batches=4))
        assert ledger.trail == [
            ("initialize", 1, None),
            ("initialize", 2, {"from": 0, "to": 3}),
            ("initialize", 3, {"from": 3, "to": 6}),
            ("initialize", 4, {"from": 6, "to": 9}),
            ("closed",),
        ]

    def test_a_partition_is_new_once_and_emitted_again_on_every_replay(self, cluster: Any, name: str) -> None:
        builder = TransactionalTopologyBuilder(
            name, "spout", PartitionedSpout(Ranges(name, batches=4, hesitant=False)), 2
        )
        builder.set_bolt("x", Batch(Fault("finish_batch"))).shuffle_grouping("spout")
        builder.set_bolt("store", Store(name)).global_grouping("x")
        handle = cluster.submit_topology(name, PENDING_4, builder.build_topology())
        handle.await_committed(4, 60)
        by_txid: dict[int, set[str]] = {}
        for how, _, offset in self.finish(handle).all():
            by_txid.setdefault(offset // 3 + 1, set()).add(how)
        assert by_txid == {1: {"new"}, 2: {"again"}, 3: {"again"}, 4: {"again"}}

    def test_a_committer_spouts_emitters_commit_in_order(self, cluster: Any, name: str) -> None:
        ledger = self.drain_ranges(cluster, name, CommitterSpout, Ranges(name, 4, fault=Fault("commit", txid=3)))
        commits = [entry[1] for entry in ledger.trail if entry[0] == "commit"]
        assert commits == [1, 1, 2, 2, 3, 3, 3, 4, 4]

    # -------------------------------------------------------------------------------- what travels

    def test_a_committer_whose_database_is_a_dict_of_its_module_writes_into_that_one(
        self, cluster: Any, name: str
    ) -> None:
        topology = line(
            name, numbers(100), 5, lambda b: b.set_bolt("sums", SumsIntoModule(name)).global_grouping("spout")
        )
        self.drain(cluster, topology, PENDING_4)
        assert SUMS[name] == sum(range(100))

    def test_a_committer_that_opens_in_prepare_what_cannot_travel_works_as_written(
        self, cluster: Any, name: str
    ) -> None:
        topology = line(
            name,
            numbers(40),
            5,
            lambda b: b.set_bolt("x", Batch(), 2).shuffle_grouping("spout"),
            lambda b: b.set_bolt("store", StoreWithLock(name), 2).fields_grouping("x", ["value"]),
            lambda b: b.set_bolt("after", CommittingTrail(name, "after")).global_grouping("store"),
        )
        config = {**PENDING_4, "topology.max.batch.attempts": 1}
        handle = self.drain(cluster, topology, config)
        ledger = self.finish(handle)
        assert sorted(ledger.all()) == list(range(40))
        assert [entry[0] for entry in ledger.trail] == [1, 2, 3, 4]

    # ---------------------------------------------------------------------- opaque spouts and law 2 (sameness)

    def test_an_opaque_spout_may_change_until_its_commit_begins_and_not_after(self, cluster: Any, name: str) -> None:
        spout = ChangingOpaqueSpout()
        spout.available = [1, 2, 3]
        gate = GrowingStore(name, spout)
        builder = TransactionalTopologyBuilder(name, "spout", spout)
        builder.set_bolt("store", gate).global_grouping("spout")
        SPOUTS[name] = spout
        handle = cluster.submit_topology(name, PENDING_4, builder.build_topology())
        eventually(lambda: handle.txid_committed >= 2)
        # Transaction 1 failed after its effect, when three more rows had come: it must be the same batch again.
        ledger = self.finish(handle)
        assert ledger.trail[:3] == [("finish", 1, [1, 2, 3]), ("finish", 1, [1, 2, 3]), ("finish", 2, [4, 5, 6])]

    def test_an_opaque_batch_whose_rows_are_gone_after_its_commit_began_waits_for_them(
        self, cluster: Any, name: str
    ) -> None:
        spout = ChangingOpaqueSpout()
        spout.available = [1, 2, 3]
        SPOUTS[name] = spout
        builder = TransactionalTopologyBuilder(name, "spout", spout)
        builder.set_bolt("store", GrowingStore(name, spout, goes=True)).global_grouping("spout")
        handle = cluster.submit_topology(name, PENDING_4, builder.build_topology())
        eventually(lambda: handle.snapshot().replays >= 3)
        assert handle.txid_committed == 0
        spout.gone = False
        eventually(lambda: handle.txid_committed >= 1)
        ledger = self.finish(handle)
        assert [entry for entry in ledger.trail if entry[1] == 1] == [("finish", 1, [1, 2, 3])] * 2

    # -------------------------------------------------------------------------------- emitting wrongly

    @pytest.mark.parametrize(
        ("how", "message"),
        [
            ("arity", r"WrongArity in finish_batch of 'x'.*emits 3 values .* has the 2 fields \['tx', 'value'\]"),
            ("attempt", r"WrongAttempt in finish_batch of 'x'.*expected the attempt of the batch at hand"),
            ("stream", r"UndeclaredStream in finish_batch of 'x'.*stream 'defautl'.*did you mean 'default'"),
            ("plain on direct", r"DirectStreamMismatch.*which is direct; use emit_direct"),
            ("direct on plain", r"DirectStreamMismatch.*not declared with direct=True; use emit\(\)"),
            (
                "class",
                r"UnregisteredClass.*'x' emitted to stream 'default', field 'value'.*tests.contracts.running.Point",
            ),
        ],
    )
    def test_emitting_what_was_not_declared_stops_at_once(
        self, cluster: Any, name: str, how: str, message: str
    ) -> None:
        topology = line(
            name,
            {0: [1]},
            1,
            lambda b: b.set_bolt("x", WrongEmits(how), 2).shuffle_grouping("spout"),
            lambda b: b.set_bolt("store", Store(name), 2).shuffle_grouping("x"),
        )
        handle = cluster.submit_topology(name, PENDING_4, topology)
        with pytest.raises(StormlineError, match=f"(?s){message}"):
            handle.await_drained(60)
        assert handle.txid_committed == 0
        handle.kill()

    def test_a_registered_class_and_direct_streams_arrive_as_they_were_sent(self, cluster: Any, name: str) -> None:
        topology = line(
            name,
            {0: [1, 2, 3]},
            1,
            lambda b: b.set_bolt("x", WrongEmits("right"), 2).shuffle_grouping("spout"),
            lambda b: b.set_bolt("store", Store(name), 3).shuffle_grouping("x").direct_grouping("x", "straight"),
        )
        config = Config(PENDING_4)
        config.register_serialization(Point)
        self.drain(cluster, topology, config)
        ledger = LEDGERS[name]
        assert sorted(value for value in ledger.all() if isinstance(value, str)) == ["straight"] * 6
        assert [value for value in ledger.all() if isinstance(value, Point)] == [Point(1, (2, 3))] * 6
        direct = [key for key, (_, values) in ledger.values.items() if "straight" in values]
        assert direct == ["2"]


SPOUTS: dict[str, Any] = {}


class GrowingStore(Store):
    """After its first effect rows appear (or all vanish), and the attempt fails."""

    def __init__(self, ledger: str, spout: Any, goes: bool = False) -> None:
        super().__init__(ledger)
        self.goes = goes

    def finish_batch(self) -> None:
        spout = SPOUTS[self.ledger]
        ledger = LEDGERS[self.ledger]
        ledger.trail.append(("finish", self.attempt.transaction_id, list(self.values)))
        if self.attempt.attempt_id == 1 and self.attempt.transaction_id == 1:
            spout.available += [4, 5, 6]
            spout.gone = self.goes
            raise FailedException("after the effect")


@dataclass(frozen=True)
class Point:
    """A class that travels only once it is registered."""

    x: int
    y: Any


class WrongEmits(Batch):
    """Emits what was not declared; or, where it does it right, a registered class and a direct tuple."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "value"))
        declarer.declare_stream("straight", Fields("tx", "value"), direct=True)

    def finish_batch(self) -> None:
        emit: dict[str, Callable[[], None]] = {
            "arity": lambda: self.collector.emit([self.attempt, 1, 2]),
            "attempt": lambda: self.collector.emit([1, 1]),
            "stream": lambda: self.collector.emit([self.attempt, 1], "defautl"),
            "plain on direct": lambda: self.collector.emit([self.attempt, 1], "straight"),
            "direct on plain": lambda: self.collector.emit_direct(1, [self.attempt, 1]),
            "class": lambda: self.collector.emit([self.attempt, Point(1, 2)]),
        }
        if self.how in emit:
            emit[self.how]()
            return
        self.collector.emit([self.attempt, Point(1, (2, 3))])
        last = self.context.component_tasks("store")[-1]
        self.collector.emit_direct(last, [self.attempt, "straight"], "straight")
