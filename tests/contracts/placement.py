"""What commits placed on the executors must do, on any engine; beside `RunningContract`, for what placement changes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from examples.words import Bucketize
from stormline import (
    Config,
    StormlineError,
    TransactionalTopologyBuilder,
)
from stormline.runtime.errors import TooManyAttempts, TopologyFailed
from tests.kits.components import LEDGERS, NO_FAULT, Basic, Batch, Counting, Fault, eventually, line, numbers
from tests.kits.placed_streams import Choosy, Knows, Pair, Sends, SendsColumns, Takes
from tests.kits.placement import (
    Buckets,
    CommittingNotes,
    FencedStore,
    GlobalCount,
    Keep,
    KeepWithLock,
    Notes,
    WordCount,
)
from tests.kits.spouts import CommitterSpout, Ranges

EXECUTORS = {Config.TOPOLOGY_COMMIT_PLACEMENT: "executors"}
PLACED = {"topology.max.spout.pending": 4, **EXECUTORS}
ANIMALS = {
    0: ["cat", "dog", "chicken", "cat", "dog", "apple"],
    1: ["cat", "dog", "apple", "banana"],
    2: ["cat", "cat", "cat", "cat", "cat", "dog", "dog", "dog", "dog"],
}  # storm-starter's


class PlacementContract:
    """Needs a fixture `cluster` with `submit_topology`, and whether its executors are `other_processes`."""

    other_processes: bool

    @pytest.fixture
    def store(self, tmp_path: Path) -> FencedStore:
        return FencedStore(tmp_path / "store.sqlite")

    @pytest.fixture
    def topology_id(self, tmp_path: Path) -> str:
        return f"placed-{os.getpid()}-{tmp_path.name}"

    def drain_placed(self, cluster: Any, topology: Any, config: Any = None) -> Any:
        handle = cluster.submit_topology(topology.id, config or PLACED, topology)
        handle.await_drained(90)
        handle.kill()
        assert handle.error is None
        return handle

    def check_processes(self, pids: set[int]) -> None:
        if self.other_processes:
            assert os.getpid() not in pids
        else:
            assert pids == {os.getpid()}

    # -------------------------------------------------------------------------------- the same results

    @pytest.mark.parametrize("placement", ["driver", "executors"])
    def test_global_count_is_the_same_wherever_commits_run(
        self, cluster: Any, topology_id: str, store: FencedStore, placement: str
    ) -> None:
        topology = line(
            topology_id,
            {partition: list(words) for partition, words in ANIMALS.items()},
            3,
            lambda b: b.set_bolt("partial", Counting(), 5).none_grouping("spout"),
            lambda b: b.set_bolt("sum", GlobalCount(store.path)).global_grouping("partial"),
            parallelism=3,
        )
        self.drain_placed(cluster, topology, {**PLACED, Config.TOPOLOGY_COMMIT_PLACEMENT: placement})
        assert store.rows("SELECT txid, value FROM stored ORDER BY txid") == [(1, 9), (2, 16), (3, 19)]

    @pytest.mark.parametrize("placement", ["driver", "executors"])
    def test_words_and_their_buckets_are_the_same_wherever_commits_run(
        self, cluster: Any, topology_id: str, store: FencedStore, placement: str
    ) -> None:
        topology = line(
            topology_id,
            {partition: list(words) for partition, words in ANIMALS.items()},
            3,
            lambda b: b.set_bolt("count", WordCount(store.path), 2).fields_grouping("spout", ["value"]),
            lambda b: b.set_bolt("bucketize", Bucketize(), 2).none_grouping("count"),
            lambda b: b.set_committer_bolt("buckets", Buckets(store.path), 2).fields_grouping("bucketize", ["bucket"]),
            parallelism=2,
        )
        self.drain_placed(cluster, topology, {**PLACED, Config.TOPOLOGY_COMMIT_PLACEMENT: placement})
        counts = {"cat": 8, "dog": 7, "apple": 2, "chicken": 1, "banana": 1}
        assert dict(store.rows("SELECT word, count FROM counts")) == counts
        assert store.values("buckets") == ["0:+1"] * 5
        store.check_tokens()
        if placement == "executors":
            self.check_processes({one.pid for one in store.begun()})
        else:
            assert {one.pid for one in store.begun()} == {os.getpid()}

    def test_every_tuple_counts_once_and_commits_are_in_order_on_the_executors(
        self, cluster: Any, topology_id: str, store: FencedStore
    ) -> None:
        topology = line(
            topology_id,
            numbers(100, 3),
            5,
            lambda b: b.set_bolt("batch", Batch(), 2).shuffle_grouping("spout"),
            lambda b: b.set_bolt("store", Keep(store.path), 5).fields_grouping("batch", ["value"]),
            parallelism=3,
        )
        handle = self.drain_placed(cluster, topology)
        assert sorted(store.values()) == list(range(100))
        assert handle.txid_committed == 7
        assert handle.snapshot().replays == 0
        store.check_tokens()
        assert len(store.begun()) == 7 * 5, "every task finishes every batch, with no tuples too"
        assert {(one.epoch, one.attempt) for one in store.begun()} == {(1, 1)}

    # -------------------------------------------------------------------------------- failing and replaying

    @pytest.mark.parametrize("where", ["prepare", "execute", "before", "after"])
    def test_failed_on_the_executors_replays_and_counts_once(
        self, cluster: Any, topology_id: str, store: FencedStore, where: str
    ) -> None:
        bolt = Keep(store.path, Fault(where, attempts=3))
        topology = line(
            topology_id,
            numbers(40),
            5,
            lambda b: b.set_bolt("x", Batch()).shuffle_grouping("spout"),
            lambda b: b.set_bolt("store", bolt, 2).fields_grouping("x", ["value"]),
        )
        handle = self.drain_placed(cluster, topology)
        assert sorted(store.values()) == list(range(40))
        assert handle.snapshot().replays >= 1
        store.check_tokens()
        last = {one.txid: one.attempt for one in store.begun()}
        assert last == {1: 1, 2: 4, 3: 4, 4: 4}

    def test_another_exception_on_the_executors_stops_with_the_users_traceback_and_the_next_run_goes_on(
        self, cluster: Any, topology_id: str, store: FencedStore
    ) -> None:
        def topology(fault: Fault) -> Any:
            return line(
                topology_id,
                numbers(40),
                5,
                lambda b: b.set_bolt("store", Keep(store.path, fault), 2).shuffle_grouping("spout"),
            )

        handle = cluster.submit_topology(topology_id, PLACED, topology(Fault("after", txid=3, error="bug")))
        with pytest.raises(TopologyFailed) as caught:
            handle.await_drained(90)
        lines = str(caught.value).splitlines()
        assert lines[0] == "Traceback (most recent call last):"
        assert "kits/placement.py" in lines[1]
        assert "topology '" + topology_id + "' stopped: ZeroDivisionError in finish_batch of 'store', task" in lines[-1]
        assert "(transaction 3:1)" in lines[-1]
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
        assert handle.txid_committed == 2
        self.drain_placed(cluster, topology(NO_FAULT))
        assert sorted(store.values()) == list(range(40))
        store.check_tokens()
        assert {one.epoch for one in store.begun()} == {1, 2}

    def test_a_batch_that_fails_too_often_on_the_executors_stops(
        self, cluster: Any, topology_id: str, store: FencedStore
    ) -> None:
        topology = line(
            topology_id,
            numbers(20),
            5,
            lambda b: b.set_bolt("store", Keep(store.path, Fault("before", attempts=99))).shuffle_grouping("spout"),
        )
        handle = cluster.submit_topology(topology_id, {**PLACED, "topology.max.batch.attempts": 2}, topology)
        with pytest.raises(TooManyAttempts, match=r"transaction 2 has failed 2 times, .*on order in before"):
            handle.await_drained(90)

    def test_a_commit_on_the_executors_that_does_not_finish_in_time_is_replayed(
        self, cluster: Any, topology_id: str, store: FencedStore
    ) -> None:
        slow = Fault("before", error="", sleep_secs=4.0)
        topology = line(
            topology_id, numbers(20), 5, lambda b: b.set_bolt("store", Keep(store.path, slow)).global_grouping("spout")
        )
        config = {**PLACED, "topology.message.timeout.secs": 2.0, "topology.max.spout.pending": 2}
        handle = self.drain_placed(cluster, topology, config)
        assert sorted(store.values()) == list(range(20))
        assert handle.snapshot().replays >= 1
        store.check_tokens()

    # -------------------------------------------------------------------------------- phases and places

    def test_the_seed_example_finishes_in_the_right_phases_wherever_each_commits(
        self, cluster: Any, topology_id: str, store: FencedStore
    ) -> None:
        def declare(b: TransactionalTopologyBuilder) -> None:
            b.set_bolt("A", Batch()).shuffle_grouping("spout")
            b.set_bolt("B", CommittingNotes(store.path, "B")).shuffle_grouping("A").add_configurations(EXECUTORS)
            b.set_bolt("C", Notes(store.path, "C")).shuffle_grouping("A").shuffle_grouping("B")
            b.set_bolt("D", CommittingNotes(store.path, "D"), 2).all_grouping("C").add_configurations(EXECUTORS)

        self.drain_placed(cluster, line(topology_id, {0: [1, 2]}, 1, declare), {"topology.commit.placement": "driver"})
        expected = [("B", "{}"), ("C", "{},B"), ("D", "C"), ("D", "C")]
        assert store.notes() == [(n, who, note.format(n)) for n in (1, 2) for who, note in expected]
        pids = {who: {pid for _, name, pid, _ in self.all_notes(store) if name == who} for who in "BCD"}
        assert pids["C"] == {os.getpid()}
        self.check_processes(pids["B"] | pids["D"])

    def all_notes(self, store: FencedStore) -> list[Any]:
        return store.rows("SELECT * FROM notes")

    def test_committers_of_one_turn_share_it_from_different_places(
        self, cluster: Any, topology_id: str, store: FencedStore
    ) -> None:
        def declare(b: TransactionalTopologyBuilder) -> None:
            b.set_bolt("here", Keep(store.path), 2).shuffle_grouping("spout")
            b.set_bolt("there", Keep(store.path), 2).shuffle_grouping("spout").add_configurations(EXECUTORS)
            both = b.set_bolt("store", Keep(store.path)).global_grouping("here").global_grouping("there")
            both.add_configurations(EXECUTORS)

        self.drain_placed(cluster, line(topology_id, numbers(12), 3, declare), {"topology.max.spout.pending": 2})
        assert sorted(store.values("here")) == sorted(store.values("there")) == list(range(12))
        assert sorted(store.values()) == [3] * 8
        pids = {name: {one.pid for one in store.begun() if one.component == name} for name in ("here", "there")}
        assert pids["here"] == {os.getpid()}
        self.check_processes(pids["there"])

    def test_the_emitters_of_a_committer_spout_commit_in_the_driver_before_bolts_on_the_executors(
        self, cluster: Any, topology_id: str, store: FencedStore
    ) -> None:
        builder = TransactionalTopologyBuilder(topology_id, "spout", CommitterSpout(Ranges(topology_id, 3)), 2)
        builder.set_bolt("store", Keep(store.path)).global_grouping("spout")
        handle = cluster.submit_topology(topology_id, PLACED, builder.build_topology())
        handle.await_committed(3, 90)
        handle.kill()
        commits = [entry[1] for entry in LEDGERS.pop(topology_id).trail if entry[0] == "commit"]
        assert commits == [1, 1, 2, 2, 3, 3]
        assert sorted({one.txid for one in store.begun()}) == [1, 2, 3]

    def test_a_committer_whose_state_cannot_travel_is_prepared_executed_and_finished_on_the_executors(
        self, cluster: Any, topology_id: str, store: FencedStore
    ) -> None:
        topology = line(
            topology_id,
            numbers(40),
            5,
            lambda b: b.set_bolt("x", Batch(), 2).shuffle_grouping("spout"),
            lambda b: b.set_bolt("store", KeepWithLock(store.path), 2).fields_grouping("x", ["value"]),
            lambda b: b.set_bolt("after", CommittingNotes(store.path, "after")).global_grouping("store"),
        )
        self.drain_placed(cluster, topology, {**PLACED, "topology.max.batch.attempts": 1})
        assert sorted(store.values()) == list(range(40))
        assert [txid for txid, _, _ in store.notes()] == [1, 2, 3, 4]
        self.check_processes({one.pid for one in store.begun()})
        store.check_tokens()

    def test_a_committer_whose_state_does_not_fit_on_the_executors_gets_its_tuples(
        self, cluster: Any, topology_id: str, store: FencedStore
    ) -> None:
        topology = line(
            topology_id, numbers(8), 2, lambda b: b.set_bolt("store", Choosy(store.path), 2).shuffle_grouping("spout")
        )
        self.drain_placed(cluster, topology, {**PLACED, "topology.max.batch.attempts": 1})
        assert sorted(store.values()) == list(range(8))

    # -------------------------------------------------------------------------------- what tasks know and send

    def test_registered_classes_direct_and_all_streams_pass_between_commits_on_the_executors(
        self, cluster: Any, topology_id: str, store: FencedStore
    ) -> None:
        def declare(b: TransactionalTopologyBuilder) -> None:
            b.set_bolt("send", Sends(store.path)).global_grouping("spout")
            to = b.set_bolt("to", Takes(store.path), 3).all_grouping("send")
            to.direct_grouping("send", "straight").shuffle_grouping("send", "spread")

        config = Config({**PLACED, "topology.debug": True})
        config.register_serialization(Pair)
        self.drain_placed(cluster, line(topology_id, {0: [1, 2]}, 1, declare), config)
        notes = sorted(note for _, name, note in store.notes() if name.startswith("to"))
        plain = ["default Pair(left=1, right=(2,)) send"] * 6
        assert notes == sorted([*plain, *["spread 7 send"] * 2, *["straight 3 send"] * 2])
        straight = {name for _, name, note in store.notes() if note.startswith("straight")}
        assert straight == {"to 2"}

    def test_record_batches_pass_between_commits_on_the_executors(
        self, cluster: Any, topology_id: str, store: FencedStore
    ) -> None:
        def declare(b: TransactionalTopologyBuilder) -> None:
            b.set_bolt("columns", SendsColumns(), 2).fields_grouping("spout", ["value"])
            b.set_bolt("store", Keep(store.path), 2).fields_grouping("columns", ["value"])

        self.drain_placed(cluster, line(topology_id, numbers(20), 5, declare))
        assert sorted(store.values()) == [10 * n for n in range(20)]
        store.check_tokens()

    def test_a_class_that_is_not_registered_cannot_cross_and_is_named(
        self, cluster: Any, topology_id: str, store: FencedStore
    ) -> None:
        def declare(b: TransactionalTopologyBuilder) -> None:
            b.set_bolt("send", Sends(store.path)).global_grouping("spout")
            b.set_bolt("to", Takes(store.path), 3).all_grouping("send")

        handle = cluster.submit_topology(topology_id, PLACED, line(topology_id, {0: [1]}, 1, declare))
        message = r"(?s)UnregisteredClass in emit of 'send'.*'send' emitted to stream 'default', field 'value': .*Pair"
        with pytest.raises(StormlineError, match=message):
            handle.await_drained(90)
        assert handle.txid_committed == 0

    def test_a_task_on_the_executors_knows_its_epoch_its_tasks_and_what_it_kept(
        self, cluster: Any, topology_id: str, store: FencedStore
    ) -> None:
        topology = line(
            topology_id,
            numbers(6),
            1,
            lambda b: b.set_bolt("know", Knows(store.path), 2).shuffle_grouping("spout").add_configuration("mine", 5),
            lambda b: b.set_bolt("shout", Basic(), 2).shuffle_grouping("know"),
        )
        self.drain_placed(cluster, topology)
        notes = [note for _, _, note in store.notes()]
        assert len(notes) == 3 * 2
        assert set(notes) == {f"epoch 1, task {index} of [2, 3], mine 5, kept {index}" for index in (0, 1)}

    def test_kill_waits_for_the_commit_that_runs_on_the_executors(
        self, cluster: Any, topology_id: str, store: FencedStore
    ) -> None:
        slow = Fault("before", txid=1, error="", sleep_secs=1.0)
        topology = line(
            topology_id, numbers(20), 5, lambda b: b.set_bolt("store", Keep(store.path, slow)).global_grouping("spout")
        )
        handle = cluster.submit_topology(topology_id, PLACED, topology)
        eventually(lambda: bool(store.begun()), 60)
        handle.kill()
        assert handle.error is None
        assert handle.txid_committed == 1
        assert sorted(store.values()) == list(range(10))
        assert {one.txid for one in store.begun()} == {1}
