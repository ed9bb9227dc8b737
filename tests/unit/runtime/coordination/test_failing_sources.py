"""Sources that have nothing, lose what they had, or give less than before."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest

from stormline import FailedException, TransactionalTopologyBuilder, TransactionAttempt
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from stormline.runtime.cluster.in_process_engine import InProcessEngine
from stormline.runtime.cluster.submission import start_topology
from stormline.runtime.coordination.next_wave import IDLE_SECS
from stormline.runtime.state.memory_store import MemoryStateServer, MemoryStateStore
from stormline.runtime.state.state_store import Op
from stormline.topology.compiler import compile_topology
from tests.kits.components import EVENTS, LEDGERS, Store, eventually
from tests.kits.spouts import PartitionedSpout, PlainSpout, Ranges

IDLE_FOR_SECS = 1.0


class CountingSpout(PlainSpout):
    """Counts how often its coordinator is asked."""

    asked = 0

    def get_coordinator(self, conf: Any, context: Any) -> Any:
        coordinator = super().get_coordinator(conf, context)
        is_ready = coordinator.is_ready

        def counted() -> bool:
            self.asked += 1
            return bool(is_ready())

        coordinator.is_ready = counted
        return coordinator


class CountingEngine(InProcessEngine):
    waves = 0

    def process(self, wave: Any) -> Any:
        CountingEngine.waves += 1
        return super().process(wave)


def test_an_idle_source_costs_no_wave_no_write_and_few_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[Sequence[Op]] = []
    write = MemoryStateStore.write

    def counted(store: MemoryStateStore, ops: Sequence[Op]) -> None:
        writes.append(ops)
        write(store, ops)

    monkeypatch.setattr(MemoryStateStore, "write", counted)
    spout = CountingSpout(Ranges("t", batches=2))
    builder = TransactionalTopologyBuilder("t", "spout", spout)
    builder.set_bolt("store", Store("t")).global_grouping("spout")
    server = MemoryStateServer()
    plan = compile_topology(builder.build_topology())
    handle = start_topology("t", plan, lambda lost: MemoryStateStore.open(server, "t", on_lost=lost), CountingEngine)
    handle.await_drained(20)
    asked, waves, written, cpu_secs = spout.asked, CountingEngine.waves, len(writes), time.process_time()
    time.sleep(IDLE_FOR_SECS)
    cpu_secs = time.process_time() - cpu_secs
    assert 1 <= spout.asked - asked <= IDLE_FOR_SECS / IDLE_SECS + 5
    assert (CountingEngine.waves, len(writes)) == (waves, written)
    assert cpu_secs < IDLE_FOR_SECS / 2
    assert handle.running
    handle.kill()


class Losing(PartitionedSpout):
    """Its second partition cannot be read while `gone` is set: an emitter then fails, as it cannot give the batch."""

    gone = False

    def get_emitter(self, conf: Any, context: Any) -> Any:
        emitter = super().get_emitter(conf, context)
        again = emitter.emit_partition_batch

        def emit_partition_batch(attempt: Any, collector: Any, partition: int, metadata: Any) -> None:
            if partition == 1 and Losing.gone:
                raise FailedException("partition 1 is gone")
            again(attempt, collector, partition, metadata)

        emitter.emit_partition_batch = emit_partition_batch
        return emitter


class LosesItsSource(Store):
    """Its effect on transaction 2 is there, then the source goes, and the attempt fails."""

    def finish_batch(self) -> None:
        super().finish_batch()
        if self.attempt == TransactionAttempt(2, 1):
            Losing.gone = True
            raise FailedException("after the effect")


@pytest.mark.parametrize("restart", [False, True])
def test_a_partition_that_vanishes_after_the_first_effect_blocks_its_transaction_and_nothing_is_skipped(
    restart: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Losing, "gone", False)
    server = MemoryStateServer()

    def submit(cluster: InProcessCluster) -> Any:
        builder = TransactionalTopologyBuilder("t", "spout", Losing(Ranges("t", batches=4, hesitant=False)))
        builder.set_bolt("store", LosesItsSource("t")).global_grouping("spout")
        return cluster.submit_topology("t", {"topology.max.spout.pending": 2}, builder.build_topology())

    with InProcessCluster(server) as cluster:
        handle = submit(cluster)
        eventually(lambda: handle.snapshot().replays >= 4)
        if restart:
            handle.kill()
            handle = submit(cluster)
            eventually(lambda: handle.snapshot().replays >= 2)
        assert handle.txid_committed == 1
        assert {attempt.transaction_id for attempt in LEDGERS["t"].finished} == {1, 2}
        Losing.gone = False
        handle.await_committed(4, 20)
    offsets = sorted(value[1:] for value in LEDGERS["t"].all())
    assert offsets[:12] == [(0, offset) for offset in range(12)]
    assert len(offsets) == len(set(offsets))


class FewerOnce(PartitionedSpout):
    """Replayed the first time, partition 0 gives a row less than its metadata says."""

    def get_emitter(self, conf: Any, context: Any) -> Any:
        emitter = super().get_emitter(conf, context)
        again = emitter.emit_partition_batch

        def emit_partition_batch(attempt: Any, collector: Any, partition: int, metadata: Any) -> None:
            fewer = partition == 0 and attempt.transaction_id == 2 and not EVENTS["gave fewer"].is_set()
            if fewer:
                EVENTS["gave fewer"].set()
            again(attempt, collector, partition, [metadata[0], metadata[1] - fewer])

        emitter.emit_partition_batch = emit_partition_batch
        return emitter


class FailsAfter(Store):
    def finish_batch(self) -> None:
        super().finish_batch()
        if self.attempt == TransactionAttempt(2, 1):
            raise FailedException("after the effect")


def test_fewer_rows_than_a_commit_began_with_are_never_committed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "stormline")
    builder = TransactionalTopologyBuilder("t", "spout", FewerOnce(Ranges("t", batches=4, hesitant=False)))
    builder.set_bolt("store", FailsAfter("t")).global_grouping("spout")
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("t", {"topology.max.spout.pending": 2}, builder.build_topology())
        handle.await_committed(4, 20)
    assert EVENTS["gave fewer"].is_set()
    assert (
        "partition 0 of spout 'spout' gave 2 tuples for transaction 2:2; it gave 3 when its commit began" in caplog.text
    )
    assert [attempt.attempt_id for attempt in LEDGERS["t"].finished if attempt.transaction_id == 2] == [1, 3]
