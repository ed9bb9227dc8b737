"""Spouts written as people write them: that change metadata in place, lose partitions, keep what they get, raise."""

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
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from stormline.runtime.cluster.in_process_engine import InProcessEngine
from stormline.runtime.errors import TopologyFailed
from stormline.runtime.messages.wave import Wave, WaveAttempt
from stormline.runtime.processing.slot_layout import Layout
from stormline.runtime.state.memory_store import MemoryStateServer
from stormline.runtime.tasks.task_environment import TaskEnvironment
from tests.kits.components import LEDGERS, NO_FAULT, Batch, Fault, Store, eventually
from tests.kits.in_process import PENDING_4, submit
from tests.kits.own_emitter import OwnEmitter


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


class Straight(OwnEmitter, IOpaquePartitionedTransactionalSpout):
    """Emits directly to the one task of its store, whatever its id is."""

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "value"), direct=True)

    def get_emitter(self, conf: Any, context: Any) -> Any:
        self.target = context.component_tasks("store")[0]
        return self

    def num_partitions(self) -> int:
        return 1

    def emit_partition_batch(self, attempt: Any, collector: Any, partition: int, last: Any) -> Any:
        collector.emit_direct(self.target, [attempt, last or 0])
        return (last or 0) + 1


class FailsAfterItsEffect(Store):
    def finish_batch(self) -> None:
        super().finish_batch()
        if self.attempt == TransactionAttempt(2, 1):
            raise ZeroDivisionError("after the effect")


def test_a_frozen_batch_of_direct_tuples_goes_on_where_another_bolt_has_moved_the_task_ids() -> None:
    server = MemoryStateServer()

    def submit_to(cluster: InProcessCluster, *before: str) -> Any:
        builder = TransactionalTopologyBuilder("t", "spout", Straight())
        for name in before:
            builder.set_bolt(name, Batch()).direct_grouping("spout")
        builder.set_bolt("store", FailsAfterItsEffect("t")).direct_grouping("spout")
        return cluster.submit_topology("t", {}, builder.build_topology(), allow_changed_topology=True)

    with InProcessCluster(server) as cluster, pytest.raises(TopologyFailed, match="after the effect"):
        submit_to(cluster).await_committed(3, 20)
    with InProcessCluster(server) as cluster:
        submit_to(cluster, "other").await_committed(3, 20)
    values = LEDGERS["t"].all()
    assert values == list(range(len(values)))


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
    from stormline.runtime.commit.commit_phase import CommitPhase

    spout = CommittingOnDriver()
    env = TaskEnvironment(plan_of(spout), 1)
    engine = InProcessEngine(env)
    attempts = [TransactionAttempt(txid, 1) for txid in (1, 2)]
    results = [engine.process(Wave(n, (WaveAttempt(a, n),))).attempts[0] for n, a in enumerate(attempts)]
    for result in results:
        assert CommitPhase(env, result, engine).run() is None
    assert (spout.committed, spout.pending) == ([1, 1], {})


class CommittingEmitter:
    """Remembers in itself what it has emitted, and keeps its collector and what cannot be copied."""

    def __init__(self) -> None:
        self.pending: list[int] = []
        self.lock = threading.Lock()

    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: Any) -> None:
        self.pending.append(attempt.transaction_id)
        self.collector = collector

    def commit(self, attempt: TransactionAttempt) -> None:
        with self.lock:
            LEDGERS["t"].trail.append(sorted(self.pending))
            self.collector.report_error(ValueError("a collector that was kept"))


class CommittingBySelf(CommittingOnDriver):
    def get_emitter(self, conf: Any, context: Any) -> Any:
        return CommittingEmitter()


def test_the_emitter_that_has_emitted_commits_with_all_that_it_remembers() -> None:
    builder = TransactionalTopologyBuilder("t", "spout", CommittingBySelf())
    builder.set_bolt("store", Store("t")).global_grouping("spout")
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("t", {"topology.max.spout.pending": 1}, builder.build_topology())
        handle.await_committed(3, 20)
        assert LEDGERS["t"].trail[:3] == [[1], [1, 2], [1, 2, 3]]


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


class PressesCtrlC(ITransactionalSpout):
    """Raises what Ctrl-C raises, in a thread to which no Ctrl-C comes."""

    class Coordinator(ITransactionalSpout.Coordinator):
        def initialize_transaction(self, txid: int, prev_metadata: Any) -> Any: ...

    class Emitter(ITransactionalSpout.Emitter):
        def emit_batch(self, attempt: Any, metadata: Any, collector: Any) -> None:
            raise KeyboardInterrupt

    def __init__(self, on_executors: bool) -> None:
        self.emits_on_executors = on_executors

    def get_coordinator(self, conf: Any, context: Any) -> Any:
        return self.Coordinator()

    def get_emitter(self, conf: Any, context: Any) -> Any:
        return self.Emitter()

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "value"))


@pytest.mark.parametrize("on_executors", [False, True])
def test_an_emitter_that_raises_what_ctrl_c_raises_stops_the_topology_with_its_own_traceback(
    on_executors: bool,
) -> None:
    with InProcessCluster() as cluster:
        handle = submit(cluster, PressesCtrlC(on_executors))
        with pytest.raises(TopologyFailed, match=r"(?s)\ATraceback.*emit_batch.*KeyboardInterrupt in .* of 'spout'"):
            handle.await_committed(1, 20)


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
