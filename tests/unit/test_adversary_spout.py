"""Spouts written as people write them: that change metadata in place, lose partitions, keep what they are given."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from stormline import (
    FailedException,
    Fields,
    ICommitterTransactionalSpout,
    IOpaquePartitionedTransactionalSpout,
    IPartitionedTransactionalSpout,
    ITransactionalSpout,
    TransactionalTopologyBuilder,
    TransactionAttempt,
    compile_topology,
)
from stormline.runtime.engine import InProcessEngine
from stormline.runtime.errors import TopologyFailed
from stormline.runtime.in_process_cluster import InProcessCluster
from stormline.runtime.layout import Layout
from stormline.runtime.task_environment import TaskEnvironment
from stormline.runtime.wave import Wave, WaveAttempt
from tests.kit import LEDGERS, NO_FAULT, Batch, Fault, Store, eventually

PENDING_4 = {"topology.max.spout.pending": 4}


class OwnEmitter:
    """A spout that is its own coordinator and emitter; only for the driver process."""

    emits_on_driver = True

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "value"))

    def get_coordinator(self, conf: Any, context: Any) -> Any:
        return self

    def get_emitter(self, conf: Any, context: Any) -> Any:
        return self

    def is_ready(self) -> bool:
        return True

    def close(self) -> None: ...


def run(spout: Any, batches: int, fault: Fault = NO_FAULT) -> list[Any]:
    builder = TransactionalTopologyBuilder("t", "spout", spout)
    builder.set_bolt("x", Batch(fault)).shuffle_grouping("spout")
    builder.set_bolt("store", Store("t")).global_grouping("x")
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("t", PENDING_4, builder.build_topology())
        handle.await_committed(batches, 20)
    return LEDGERS["t"].all()


class InPlaceCoordinator(OwnEmitter, ITransactionalSpout):
    """Changes the metadata it gets, and gives it back; its emitter eats it up."""

    begun = 0

    def is_ready(self) -> bool:
        self.begun += 1
        return self.begun <= 4

    def initialize_transaction(self, txid: int, prev_metadata: Any) -> Any:
        metadata = prev_metadata or {"rows": [0]}
        metadata["rows"] = [metadata["rows"][0] + 1]
        return metadata

    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: Any) -> None:
        collector.emit([attempt, metadata["rows"][0]])
        metadata["rows"].clear()


def test_a_coordinator_and_an_emitter_may_change_metadata_in_place() -> None:
    assert run(InPlaceCoordinator(), 4, Fault("finish_batch")) == [1, 2, 3, 4]


class InPlaceEmitter(OwnEmitter, IPartitionedTransactionalSpout):
    """Its emitter changes the metadata of the batch before, and gives it back."""

    begun = 0

    def is_ready(self) -> bool:
        self.begun += 1
        return self.begun <= 4

    def num_partitions(self) -> int:
        return 1

    def emit_partition_batch_new(self, attempt: Any, collector: Any, partition: int, last: Any) -> Any:
        metadata = last or {"n": 0}
        metadata["n"] += 1
        collector.emit([attempt, metadata["n"]])
        return metadata

    def emit_partition_batch(self, attempt: Any, collector: Any, partition: int, metadata: Any) -> None:
        collector.emit([attempt, metadata.pop("n")])


def test_an_emitter_may_change_a_partitions_metadata_in_place() -> None:
    assert run(InPlaceEmitter(), 4, Fault("finish_batch", attempts=2)) == [1, 2, 3, 4]


class Flapping(OwnEmitter):
    """Its second partition is not there for batch 2."""

    begun = 0
    txid = 0

    def is_ready(self) -> bool:
        ready = self.begun == len(LEDGERS["t"].applied) and self.begun < 3
        self.begun += ready
        return ready

    def _rows(self, attempt: Any, collector: Any, partition: int, last: Any) -> int:
        start = last or 0
        collector.emit([attempt, (partition, start)])
        return int(start + 1)


class FlappingPartitioned(Flapping, IPartitionedTransactionalSpout):
    def num_partitions(self) -> int:
        return 1 if self.begun == 2 else 2

    def emit_partition_batch_new(self, attempt: Any, collector: Any, partition: int, last: Any) -> Any:
        return self._rows(attempt, collector, partition, last)

    def emit_partition_batch(self, attempt: Any, collector: Any, partition: int, metadata: Any) -> None:
        collector.emit([attempt, (partition, metadata - 1)])


class FlappingOpaque(Flapping, IOpaquePartitionedTransactionalSpout):
    def num_partitions(self) -> int:
        return 1 if self.begun == 2 else 2

    def emit_partition_batch(self, attempt: Any, collector: Any, partition: int, last: Any) -> Any:
        return self._rows(attempt, collector, partition, last)


@pytest.mark.parametrize("spout", [FlappingPartitioned, FlappingOpaque])
def test_a_partition_that_was_gone_for_a_batch_goes_on_where_it_stood(spout: Any) -> None:
    assert sorted(run(spout(), 3)) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]


class FailsInItsSecondPartition(OwnEmitter, IPartitionedTransactionalSpout):
    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []

    def num_partitions(self) -> int:
        return 2

    def emit_partition_batch_new(self, attempt: Any, collector: Any, partition: int, last: Any) -> Any:
        if attempt.transaction_id == 1:
            self.calls.append(("new", partition))
            if partition == 1 and attempt.attempt_id == 1:
                raise FailedException("not now")
        return 0

    def emit_partition_batch(self, attempt: Any, collector: Any, partition: int, metadata: Any) -> None:
        if attempt.transaction_id == 1:
            self.calls.append(("again", partition))


def test_a_partition_is_new_once_also_where_the_next_partition_fails() -> None:
    spout = FailsInItsSecondPartition()
    run(spout, 1)
    assert spout.calls == [("new", 0), ("new", 1), ("again", 0), ("new", 1)]


# ---------------------------------------------------------------------------------------- committer spouts


class CommittingOnDriver(OwnEmitter, ITransactionalSpout, ICommitterTransactionalSpout):
    """Remembers what it has emitted, until it commits; keeps its collector too."""

    def __init__(self) -> None:
        self.pending: dict[int, int] = {}
        self.committed: list[int] = []

    def initialize_transaction(self, txid: int, prev_metadata: Any) -> Any:
        return txid

    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: Any) -> None:
        self.pending[attempt.transaction_id] = attempt.attempt_id
        self.collector = collector

    def commit(self, attempt: TransactionAttempt) -> None:
        self.committed.append(self.pending.pop(attempt.transaction_id))


def plan_of(spout: Any) -> Any:
    builder = TransactionalTopologyBuilder("t", "spout", spout)
    builder.set_bolt("store", Store("t")).global_grouping("spout")
    return compile_topology(builder.build_topology())


def test_the_commit_of_a_spout_on_the_driver_finds_what_later_batches_have_left_there() -> None:
    from stormline.runtime.commit_runner import CommitRun

    spout = CommittingOnDriver()
    env = TaskEnvironment(plan_of(spout), 1)
    engine = InProcessEngine(env)
    attempts = [TransactionAttempt(txid, 1) for txid in (1, 2)]
    results = [engine.process(Wave(n, (WaveAttempt(a, n),))).attempts[0] for n, a in enumerate(attempts)]
    for result in results:
        assert CommitRun(env, result, engine).run() is None
    assert (spout.committed, spout.pending) == ([1, 1], {})


class CommittingEmitter:
    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: Any) -> None:
        self.__dict__.setdefault("pending", {})[attempt.transaction_id] = True
        self.collector = collector

    def commit(self, attempt: TransactionAttempt) -> None:
        LEDGERS["t"].trail.append(sorted(self.pending))  # type: ignore[attr-defined]
        self.collector.report_error(ValueError("a collector that was kept"))

    def close(self) -> None: ...


class CommittingOnExecutors(CommittingOnDriver):
    emits_on_driver = False

    def get_emitter(self, conf: Any, context: Any) -> Any:
        return CommittingEmitter()


def test_the_state_of_an_emitter_travels_to_its_commit_with_the_collector_it_keeps() -> None:
    builder = TransactionalTopologyBuilder("t", "spout", CommittingOnExecutors())
    builder.set_bolt("store", Store("t")).global_grouping("spout")
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("t", {"topology.max.spout.pending": 1}, builder.build_topology())
        handle.await_committed(3, 20)
        assert LEDGERS["t"].trail[:3] == [[1], [1, 2], [1, 2, 3]]


class ConnectedEmitter(CommittingEmitter):
    def __init__(self) -> None:
        self.connection = threading.Lock()


class Connected(CommittingOnExecutors):
    def get_emitter(self, conf: Any, context: Any) -> Any:
        return ConnectedEmitter()


def test_an_emitter_that_cannot_travel_to_its_commit_stops_the_topology_and_is_told_the_remedy() -> None:
    builder = TransactionalTopologyBuilder("t", "spout", Connected())
    builder.set_bolt("store", Store("t")).global_grouping("spout")
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("t", {}, builder.build_topology())
        with pytest.raises(TopologyFailed) as failed:
            handle.await_committed(1, 20)
    assert LEDGERS["t"].trail == LEDGERS["t"].finished == []
    assert "EmitterCannotTravel in the emitter of 'spout', task 1: spout 'spout' is committed by" in str(failed.value)
    assert "cannot pickle '_thread.lock' object; set emits_on_driver = True in the spout, or" in str(failed.value)


def test_emitters_of_the_double_are_not_shared_between_the_phases() -> None:
    env = TaskEnvironment(plan_of(CommittingOnExecutors()), 1)
    InProcessEngine(env).process(Wave(1, (WaveAttempt(TransactionAttempt(1, 1), 1),)))
    assert not hasattr(env.emitter(1), "pending")


# ---------------------------------------------------------------------------------------- coordinators that raise


class Hopeless(OwnEmitter, ITransactionalSpout):
    def __init__(self, error: BaseException, where: str = "is_ready") -> None:
        self.error = error
        self.where = where
        self.asked = 0

    def is_ready(self) -> bool:
        self.asked += 1
        if self.where == "is_ready":
            raise self.error
        return False

    def close(self) -> None:
        if self.where == "close":
            raise self.error

    def initialize_transaction(self, txid: int, prev_metadata: Any) -> Any: ...

    def emit_batch(self, attempt: Any, metadata: Any, collector: Any) -> None: ...


def submit(cluster: InProcessCluster, spout: Any) -> Any:
    builder = TransactionalTopologyBuilder("t", "spout", spout)
    builder.set_bolt("store", Store("t")).global_grouping("spout")
    return cluster.submit_topology("t", {}, builder.build_topology())


def test_a_coordinator_that_fails_is_not_taken_for_one_that_has_nothing_left() -> None:
    spout = Hopeless(FailedException("the queue does not answer"))
    with InProcessCluster() as cluster:
        handle = submit(cluster, spout)
        with pytest.raises(TimeoutError, match="the spout to be drained"):
            handle.await_drained(0.3)
        assert spout.asked > 3


@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit(), StopIteration()])
def test_a_coordinator_that_raises_something_odd_stops_the_topology_with_its_traceback(error: BaseException) -> None:
    with InProcessCluster() as cluster:
        handle = submit(cluster, Hopeless(error))
        with pytest.raises(TopologyFailed, match=rf"(?s)\ATraceback.*{type(error).__name__} in the coordinator"):
            handle.await_drained(5)


def test_whatever_a_coordinator_raises_when_closed_the_topology_is_given_up() -> None:
    with InProcessCluster() as cluster:
        submit(cluster, Hopeless(SystemExit(3), "close")).kill()
        handle = submit(cluster, Hopeless(SystemExit(3), "nowhere"))
        eventually(lambda: handle.running)


def test_a_spout_without_bolts_runs() -> None:
    builder = TransactionalTopologyBuilder("t", "spout", InPlaceCoordinator())
    topology = builder.build_topology()
    assert Layout(compile_topology(topology), 2).slots == (1,)
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("t", {}, topology)
        assert handle.await_committed(4, 10) == 4
