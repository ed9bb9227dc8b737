"""What columnar bolts must do, on any engine, wherever they meet row bolts; beside `RunningContract`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from stormline import Config, FailedException, StormlineError, TransactionalTopologyBuilder
from stormline.runtime.errors import TopologyFailed
from stormline.topology.grouping import Grouping, GroupingKind
from tests.kits.columnar import (
    ArrowCommittingTrail,
    ArrowDirect,
    ArrowGather,
    ArrowOpaqueSpout,
    ArrowPartitionedSpout,
    ArrowPass,
    ArrowStore,
    ArrowStoreWithLock,
    ArrowTrail,
    BasicArrow,
    ByParity,
)
from tests.kits.components import (
    LEDGERS,
    NO_FAULT,
    Basic,
    Batch,
    CommittingTrail,
    Fault,
    Ledger,
    Store,
    Trail,
    eventually,
    line,
    numbers,
)
from tests.kits.spouts import Ranges

PENDING_4 = {"topology.max.spout.pending": 4}
GROUPINGS = {
    "shuffle": Grouping(GroupingKind.SHUFFLE),
    "none": Grouping(GroupingKind.NONE),
    "local or shuffle": Grouping(GroupingKind.LOCAL_OR_SHUFFLE),
    "fields": Grouping(GroupingKind.FIELDS, ("value",)),
    "fields, with the attempt": Grouping(GroupingKind.FIELDS, ("tx", "value")),
    "partial key": Grouping(GroupingKind.PARTIAL_KEY, ("value",)),
    "global": Grouping(GroupingKind.GLOBAL),
    "all": Grouping(GroupingKind.ALL),
    "custom": Grouping(GroupingKind.CUSTOM, custom=ByParity()),
}


class ColumnarContract:
    """Needs the fixtures `cluster` and `name`, and the methods, of `RunningContract`."""

    drain: Any
    finish: Any

    # -------------------------------------------------------------------------------- the good run

    @pytest.mark.parametrize("parallelism", [1, 2])
    def test_rows_and_columns_mix_and_every_tuple_counts_once(self, cluster: Any, name: str, parallelism: int) -> None:
        p = parallelism
        topology = line(
            name,
            numbers(100, 3),
            5,
            lambda b: b.set_bolt("pass", ArrowPass(), p).shuffle_grouping("spout"),
            lambda b: b.set_bolt("basic", Basic(), p).fields_grouping("pass", ["value"]),
            lambda b: b.set_bolt("gather", ArrowGather(), p).local_or_shuffle_grouping("basic"),
            lambda b: b.set_bolt("batch", Batch(), p).shuffle_grouping("gather"),
            lambda b: b.set_bolt("again", ArrowGather(), p).fields_grouping("batch", ["value"]),
            lambda b: b.set_bolt("store", ArrowStore(name), p).fields_grouping("again", ["value"]),
            parallelism=p,
        )
        handle = self.drain(cluster, topology)
        ledger = self.finish(handle)
        assert sorted(ledger.all()) == list(range(100))
        snapshot = handle.snapshot()
        assert (snapshot.transactions, snapshot.tuples, snapshot.replays) == (7, 100, 0)

    @pytest.mark.parametrize("grouping", GROUPINGS)
    def test_every_grouping_sends_columns_where_it_sends_rows(self, cluster: Any, name: str, grouping: str) -> None:
        """From a columnar bolt to a row bolt, from a row bolt to a columnar one, and between columnar ones."""
        by_rows = self.shares(cluster, name, Batch(), Store, grouping)
        assert sum(map(len, by_rows.values())) == {"all": 180, "custom": 30 + 3 * 15}.get(grouping, 60)
        for sender, receiver in ((ArrowGather(), Store), (Batch(), ArrowStore), (ArrowGather(), ArrowStore)):
            shares = self.shares(cluster, name, sender, receiver, grouping)
            if grouping in ("shuffle", "none", "local or shuffle"):  # who gets which is not defined, only how many
                assert sorted(value for share in shares.values() for value in share) == list(range(60))
                assert sorted(map(len, shares.values())) == sorted(map(len, by_rows.values()))
            else:
                assert shares == by_rows

    def shares(self, cluster: Any, name: str, sender: Any, receiver: Any, grouping: str) -> dict[str, list[int]]:
        """Return what each of three tasks gets of 60 numbers that one task emits."""
        which = f"{name}-{type(sender).__name__}-{receiver.__name__}"
        topology = line(
            which,
            {0: list(range(60))},
            60,
            lambda b: b.set_bolt("x", sender).shuffle_grouping("spout"),
            lambda b: b.set_bolt("store", receiver(which), 3).grouping("x", GROUPINGS[grouping]),
        )
        self.finish(self.drain(cluster, topology))
        values = LEDGERS.pop(which).values
        return {task: sorted(got) for task, (_, got) in values.items()}

    def test_direct_tuples_reach_the_columnar_task_they_name(self, cluster: Any, name: str) -> None:
        topology = line(
            name,
            {0: list(range(30))},
            30,
            lambda b: b.set_bolt("x", ArrowDirect()).shuffle_grouping("spout"),
            lambda b: b.set_bolt("store", ArrowStore(name), 3).direct_grouping("x"),
        )
        ledger = self.finish(self.drain(cluster, topology))
        assert {task: sorted(got) for task, (_, got) in ledger.values.items()} == {
            str(task): list(range(task, 30, 3)) for task in range(3)
        }

    def test_every_task_finishes_every_batch_without_a_batch_of_rows_too(self, cluster: Any, name: str) -> None:
        topology = line(
            name,
            {0: [1, 2, 3]},
            1,
            lambda b: b.set_bolt("count", ArrowPass(counts=True), 4).global_grouping("spout"),
            lambda b: b.set_bolt("store", Store(name)).global_grouping("count"),
        )
        self.drain(cluster, topology)
        assert sorted(LEDGERS[name].all()) == [0] * 9 + [1] * 3

    def test_rows_and_batches_of_one_basic_bolt_keep_their_order(self, cluster: Any, name: str) -> None:
        topology = line(
            name,
            {0: [1, 2]},
            2,
            lambda b: b.set_bolt("both", BasicArrow()).shuffle_grouping("spout"),
            lambda b: b.set_bolt("rows", CommittingTrail(name, "rows")).global_grouping("both"),
            lambda b: b.set_bolt("columns", ArrowStore(name)).global_grouping("both"),
        )
        self.drain(cluster, topology)
        expected = [1, 1001, 2001, 2, 1002, 2002]
        assert LEDGERS[name].trail == [(1, "rows", sorted(map(str, expected)))]
        assert LEDGERS[name].all() == sorted(expected, key=repr)

    def test_partitions_emitted_as_batches_are_counted_and_replayed(self, cluster: Any, name: str) -> None:
        ranges = Ranges(name, batches=4, fault=Fault("emit", attempts=2), hesitant=False)
        builder = TransactionalTopologyBuilder(name, "spout", ArrowPartitionedSpout(ranges), 2)
        builder.set_bolt("gather", ArrowGather(), 2).shuffle_grouping("spout")
        builder.set_bolt("store", ArrowStore(name, Fault("after", txid=3))).global_grouping("gather")
        handle = cluster.submit_topology(name, PENDING_4, builder.build_topology())
        handle.await_committed(4, 60)
        ledger = self.finish(handle)
        assert sorted(ledger.all()) == sorted([*range(12), *range(100, 112)])
        assert handle.snapshot().tuples == 24

    # -------------------------------------------------------------------------------- phases

    @pytest.mark.parametrize("columnar", ["A", "B", "C", "D", "BC", "CD", "ABCD"])
    def test_the_seed_example_finishes_in_the_right_phases_whoever_is_columnar(
        self, cluster: Any, name: str, columnar: str
    ) -> None:
        kinds = {"B": (CommittingTrail, ArrowCommittingTrail), "C": (Trail, ArrowTrail)}
        kinds["D"] = kinds["B"]

        def bolt(which: str) -> Any:
            return kinds[which][which in columnar](name, which)

        topology = line(
            name,
            {0: [1, 2]},
            1,
            lambda b: b.set_bolt("A", ArrowGather() if "A" in columnar else Batch()).shuffle_grouping("spout"),
            lambda b: b.set_bolt("B", bolt("B")).shuffle_grouping("A"),
            lambda b: b.set_bolt("C", bolt("C")).shuffle_grouping("A").shuffle_grouping("B"),
            lambda b: b.set_bolt("D", bolt("D"), 2).all_grouping("C"),
        )
        self.drain(cluster, topology)
        # A columnar one also emits while it executes: what B emits in the processing phase is held for the commit.
        of_b = ["B", "b"] if "B" in columnar else ["B"]
        of_c = LEDGERS[name].trail[2][2] if "C" in columnar else ["C"]
        assert set(of_c) == ({"C", "c"} if "C" in columnar else {"C"})
        assert LEDGERS[name].trail == [
            entry
            for txid in (1, 2)
            for entry in (
                (txid, "B", [str(txid)]),
                (txid, "C", sorted([str(txid), *of_b])),
                (txid, "D", of_c),
                (txid, "D", of_c),
            )
        ]

    @pytest.mark.parametrize("placement", ["driver", "executors"])
    def test_what_a_columnar_committer_emits_reaches_rows_and_columns_in_the_same_commit(
        self, cluster: Any, name: str, placement: str
    ) -> None:
        topology = line(
            name,
            numbers(20),
            5,
            lambda b: (
                b.set_committer_bolt("committer", ArrowGather(), 2)
                .fields_grouping("spout", ["value"])
                .add_configuration(Config.TOPOLOGY_COMMIT_PLACEMENT, placement)
            ),
            lambda b: b.set_bolt("rows", Trail(name, "rows")).global_grouping("committer"),
            lambda b: b.set_bolt("columns", ArrowStore(name)).global_grouping("committer"),
        )
        self.drain(cluster, topology)
        ledger = LEDGERS[name]
        assert sorted(ledger.all()) == list(range(20))
        assert sorted(int(value) for _, _, values in ledger.trail for value in values) == list(range(20))
        assert [txid for txid, *_ in ledger.trail] == [1, 2]

    def test_a_columnar_committer_that_holds_what_cannot_travel_gets_its_batches_at_the_commit(
        self, cluster: Any, name: str
    ) -> None:
        def bolts(which: str, sender: Any) -> list[Callable[[TransactionalTopologyBuilder], Any]]:
            return [
                lambda b: b.set_bolt("x", sender, 2).shuffle_grouping("spout"),
                lambda b: b.set_bolt("store", ArrowStoreWithLock(which), 2).fields_grouping("x", ["value"]),
                lambda b: b.set_bolt("after", CommittingTrail(which, "after")).global_grouping("store"),
            ]

        for sender in (Batch(), ArrowGather()):
            which = f"{name}-{type(sender).__name__}"
            topology = line(which, numbers(40), 5, *bolts(which, sender))
            handle = self.drain(cluster, topology, {**PENDING_4, "topology.max.batch.attempts": 1})
            ledger = self.finish(handle)
            assert sorted(ledger.all()) == list(range(40))
            assert [entry[0] for entry in ledger.trail] == [1, 2, 3, 4]
            del LEDGERS[which]

    # -------------------------------------------------------------------------------- failing and replaying

    @pytest.mark.parametrize("where", ["prepare", "execute", "finish_batch"])
    def test_failed_in_a_columnar_bolt_replays(self, cluster: Any, name: str, where: str) -> None:
        self.check_columnar_replay(cluster, name, ArrowGather(Fault(where)), NO_FAULT)

    @pytest.mark.parametrize("where", ["prepare", "execute", "before", "after"])
    def test_failed_in_a_columnar_committer_replays_and_counts_once(self, cluster: Any, name: str, where: str) -> None:
        self.check_columnar_replay(cluster, name, ArrowPass(), Fault(where, attempts=3))

    def check_columnar_replay(self, cluster: Any, name: str, bolt: Any, fault: Fault) -> None:
        topology = line(
            name,
            numbers(40),
            5,
            lambda b: b.set_bolt("x", bolt).shuffle_grouping("spout"),
            lambda b: b.set_bolt("store", ArrowStore(name, fault), 2).fields_grouping("x", ["value"]),
        )
        handle = self.drain(cluster, topology)
        ledger = self.finish(handle)
        assert sorted(ledger.all()) == list(range(40))
        attempts = {attempt.transaction_id: attempt.attempt_id for attempt in ledger.finished}
        assert attempts[1] == 1, "earlier ones are untouched"
        assert attempts[2] == attempts[3] == attempts[4] == 1 + max(fault.attempts, 1)

    def test_an_exception_in_execute_batch_stops_with_the_users_traceback(self, cluster: Any, name: str) -> None:
        topology = line(
            name,
            numbers(40),
            5,
            lambda b: b.set_bolt("x", ArrowPass(Fault("execute", txid=3, error="bug"))).shuffle_grouping("spout"),
            lambda b: b.set_bolt("store", Store(name)).global_grouping("x"),
        )
        handle = cluster.submit_topology(name, PENDING_4, topology)
        with pytest.raises(TopologyFailed, match=r"ZeroDivisionError in execute of 'x', task") as caught:
            handle.await_drained(60)
        assert "kits/columnar.py" in str(caught.value)
        assert handle.txid_committed == 2

    # ---------------------------------------------------------------------- opaque spouts and law 2 (sameness)

    @pytest.mark.parametrize("change", ["another cut", "rows before, batches now", "batches before, rows now"])
    def test_an_opaque_batch_is_the_same_after_its_commit_began_however_it_is_cut(
        self, cluster: Any, name: str, change: str
    ) -> None:
        spout = ArrowOpaqueSpout()
        spout.available = [1, 2, 3]
        spout.as_rows = change.startswith("rows")
        spout.as_rows_later = change.endswith("rows now")
        OPAQUE[name] = spout
        builder = TransactionalTopologyBuilder(name, "spout", spout)
        builder.set_bolt("store", ArrowChangingStore(name)).global_grouping("spout")
        handle = cluster.submit_topology(name, PENDING_4, builder.build_topology())
        eventually(lambda: handle.txid_committed >= 2)
        ledger = self.finish(handle)
        assert ledger.trail[:3] == [("finish", 1, [1, 2, 3]), ("finish", 1, [1, 2, 3]), ("finish", 2, [4, 5, 6])]

    def test_an_opaque_batch_that_comes_out_differently_waits(self, cluster: Any, name: str) -> None:
        spout = ArrowOpaqueSpout()
        spout.available = [1, 2, 3]
        OPAQUE[name] = spout
        builder = TransactionalTopologyBuilder(name, "spout", spout)
        builder.set_bolt("store", ArrowChangingStore(name, first=7)).global_grouping("spout")
        handle = cluster.submit_topology(name, PENDING_4, builder.build_topology())
        eventually(lambda: handle.snapshot().replays >= 3)
        assert handle.txid_committed == 0
        spout.available[0] = 1
        eventually(lambda: handle.txid_committed >= 1)
        ledger = self.finish(handle)
        assert [entry for entry in ledger.trail if entry[1] == 1] == [("finish", 1, [1, 2, 3])] * 2

    # -------------------------------------------------------------------------------- what has no place in a column

    @pytest.mark.parametrize("parallelism", [1, 2])
    def test_rows_that_do_not_go_into_columns_stop_the_topology_and_say_where(
        self, cluster: Any, name: str, parallelism: int
    ) -> None:
        topology = line(
            name,
            {0: [1, 2, "a", "b"]},
            4,
            lambda b: b.set_bolt("basic", Basic(), parallelism).shuffle_grouping("spout"),
            lambda b: b.set_bolt("x", ArrowPass(), parallelism).global_grouping("basic"),
        )
        handle = cluster.submit_topology(name, PENDING_4, topology)
        message = (
            r"ColumnCannotTravel in .*'basic' emitted to stream 'default', to which a bolt listens that takes record "
            r"batches; field 'value': values of several types, int and str, are in one column; emit a value"
        )
        with pytest.raises(StormlineError, match=message):
            handle.await_drained(60)
        assert handle.txid_committed == 0

    def test_debug_logs_every_tuple_of_a_batch(self, cluster: Any, name: str, caplog: Any) -> None:
        topology = line(
            name,
            {0: [1]},
            1,
            lambda b: b.set_bolt("store", ArrowStore(name)).shuffle_grouping("spout").set_debug(True),
            lambda b: b.set_bolt("after", Trail(name, "after")).shuffle_grouping("store"),
        )
        with caplog.at_level(logging.INFO, "stormline"):
            self.drain(cluster, topology)
        assert "store, task 2 emits to default: [TransactionAttempt(transaction_id=1, attempt_id=1), 1]" in caplog.text


OPAQUE: dict[str, ArrowOpaqueSpout] = {}


class ArrowChangingStore(ArrowStore):
    """After its first effect rows appear, the cut is another one, the first row may be too, and the attempt fails."""

    def __init__(self, ledger: str, first: int | None = None) -> None:
        super().__init__(ledger)
        self.first = first

    def finish_batch(self) -> None:
        spout, ledger = OPAQUE[self.ledger], LEDGERS[self.ledger]
        values = [value for batch in self.batches for value in batch.column(0).to_pylist()]
        _note(ledger, self.attempt.transaction_id, values)
        if self.attempt.attempt_id == 1 and self.attempt.transaction_id == 1:
            spout.available += [4, 5, 6]
            spout.available[0] = self.first or spout.available[0]
            spout.cut, spout.as_rows = 2, spout.as_rows_later
            raise FailedException("after the effect")


def _note(ledger: Ledger, txid: int, values: list[Any]) -> None:
    ledger.trail.append(("finish", txid, values))
