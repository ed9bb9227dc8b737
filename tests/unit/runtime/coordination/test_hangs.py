"""The runner's threads against commits that hang, waves that cannot be cancelled, and owners that are lost."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from stormline import TransactionalTopologyBuilder, TransactionAttempt
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from stormline.runtime.cluster.in_process_engine import InProcessEngine
from stormline.runtime.cluster.submission import start_topology
from stormline.runtime.coordination import topology_runner
from stormline.runtime.coordination.wave_thread import WaveEnded, WaveThread
from stormline.runtime.errors import SessionLost, TopologyFailed
from stormline.runtime.messages.engine import EngineFailure
from stormline.runtime.messages.wave import Wave, WaveAttempt, WaveResult
from stormline.runtime.state.memory_store import MemoryStateServer, MemoryStateStore
from stormline.runtime.world.world import REAL
from stormline.topology.compiler import compile_topology
from tests.kits.components import EVENTS, LEDGERS, CommittingTrail, Store, eventually, line, numbers
from tests.kits.spouts import Coordinator, PlainSpout, Ranges


class Hangs(CommittingTrail):
    """Its first commit goes on only when it is told."""

    def finish_batch(self) -> None:
        if self.attempt.attempt_id == 1 and self.attempt.transaction_id == 1:
            EVENTS["hanging"].set()
            EVENTS["go on"].wait(20)
            EVENTS["woken"].set()
        LEDGERS[self.ledger].trail.append((self.name, self.attempt))


class Notes(CommittingTrail):
    def finish_batch(self) -> None:
        LEDGERS[self.ledger].trail.append((self.name, self.attempt))


def chain(tasks: int = 1) -> Any:
    return line(
        "t",
        numbers(10),
        5,
        lambda b: b.set_bolt("first", Hangs("t", "first"), tasks).global_grouping("spout"),
        lambda b: b.set_bolt("second", Notes("t", "second"), tasks).global_grouping("first"),
    )


@pytest.mark.parametrize("tasks", [1, 2])
def test_a_commit_that_was_abandoned_begins_nothing_more_when_it_wakes_up(tasks: int) -> None:
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("t", {"topology.message.timeout.secs": 0.2}, chain(tasks))
        eventually(lambda: handle.snapshot().replays)
        EVENTS["go on"].set()
        handle.await_drained(20)
    seconds = [attempt.attempt_id for name, attempt in LEDGERS["t"].trail if name == "second"]
    assert seconds
    assert 1 not in seconds


def test_a_driver_that_lost_its_session_in_a_commit_begins_nothing_more() -> None:
    server = MemoryStateServer()
    with InProcessCluster(server) as cluster:
        handle = cluster.submit_topology("t", {}, chain())
        assert EVENTS["hanging"].wait(10)
        server.expire("t")
        eventually(lambda: isinstance(handle.error, SessionLost))
        time.sleep(0.1)
        assert handle.running, "it ends when the user code does that it has called"
        EVENTS["go on"].set()
        assert EVENTS["woken"].wait(5)
        eventually(lambda: not handle.running)
    assert [name for name, _ in LEDGERS["t"].trail] == ["first"]


class RaisesWhenAsked(Coordinator):
    """Raises once a commit runs."""

    def is_ready(self) -> bool:
        if EVENTS["hanging"].is_set():
            raise ConnectionError("the source does not answer")
        return super().is_ready()


class UnansweringSpout(PlainSpout):
    def get_coordinator(self, conf: Any, context: Any) -> Any:
        return RaisesWhenAsked(self.ranges)


def test_a_topology_that_stops_by_an_error_lets_the_commit_that_runs_end_and_records_it() -> None:
    builder = TransactionalTopologyBuilder("t", "spout", UnansweringSpout(Ranges("t", 10)))
    builder.set_bolt("first", Hangs("t", "first")).global_grouping("spout")
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("t", {"topology.max.spout.pending": 2}, builder.build_topology())
        eventually(lambda: handle.error is not None)
        time.sleep(0.1)
        assert handle.running
        EVENTS["go on"].set()
        with pytest.raises(TopologyFailed, match="the source does not answer"):
            handle.await_committed(9, 20)
        assert handle.txid_committed == 1
        assert (
            cluster.submit_topology("t", {}, builder.build_topology(), allow_changed_topology=True).txid_committed == 1
        )


@pytest.mark.parametrize("timeouts", [True, False])
def test_a_commit_that_hangs_keeps_a_topology_that_stops_by_an_error_for_a_while_only(
    monkeypatch: pytest.MonkeyPatch, timeouts: bool
) -> None:
    monkeypatch.setattr(topology_runner, "COMMIT_END_SECS", 0.2)
    builder = TransactionalTopologyBuilder("t", "spout", UnansweringSpout(Ranges("t", 10)))
    builder.set_bolt("first", Hangs("t", "first")).global_grouping("spout")
    config = {"topology.enable.message.timeouts": timeouts, "topology.message.timeout.secs": 0.2}
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("t", config, builder.build_topology())
        eventually(lambda: not handle.running)
        assert handle.txid_committed == 0
        EVENTS["go on"].set()


class Deaf(InProcessEngine):
    """An engine whose first job begins after it was cancelled, and then goes on until it is cancelled again."""

    def __init__(self) -> None:
        self.cancelled = 0

    def process(self, wave: Wave) -> WaveResult:
        eventually(lambda: self.cancelled >= 2)
        raise EngineFailure("cancelled")

    def cancel(self) -> None:
        self.cancelled += 1

    def close(self) -> None: ...


@pytest.mark.parametrize("timeout_secs", [None, 30.0])
def test_a_wave_that_was_cancelled_before_its_job_began_is_cancelled_again(
    timeout_secs: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stormline.runtime.coordination.wave_thread.CANCEL_AGAIN_SECS", 0.01)
    ended: list[WaveEnded] = []
    waves = WaveThread(REAL, Deaf(), ended.append, timeout_secs)
    waves.start(Wave(1, (WaveAttempt(TransactionAttempt(1, 1), None),)))
    assert not waves.overdue()
    waves.cancel()
    eventually(waves.overdue)
    waves.cancel()
    eventually(lambda: bool(ended))
    waves.ended()
    assert waves.deadline() is None
    waves.close(1)


class Obedient(InProcessEngine):
    """Its wave ends when it is told, or is cancelled."""

    def __init__(self) -> None:
        self.begun, self.go_on, self.cancelled = (threading.Event() for _ in range(3))

    def process(self, wave: Wave) -> WaveResult:
        self.begun.set()
        assert self.go_on.wait(10)
        return WaveResult(wave, [])

    def cancel(self) -> None:
        self.cancelled.set()
        self.go_on.set()


def test_a_wave_that_soon_ends_may_end_when_the_topology_does() -> None:
    engine = Obedient()
    ended: list[WaveEnded] = []
    waves = WaveThread(REAL, engine, ended.append, None)
    waves.start(Wave(1, (WaveAttempt(TransactionAttempt(1, 1), None),)))
    assert engine.begun.wait(10)
    closing = threading.Thread(target=waves.close, args=(10,))
    closing.start()
    engine.go_on.set()
    closing.join(10)
    assert [end.failure for end in ended] == [None]
    assert not engine.cancelled.is_set()


def test_a_wave_that_goes_on_is_cancelled_when_the_topology_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stormline.runtime.coordination.wave_thread.FINISH_SECS", 0.01)
    engine = Obedient()
    ended: list[WaveEnded] = []
    waves = WaveThread(REAL, engine, ended.append, None)
    waves.start(Wave(1, (WaveAttempt(TransactionAttempt(1, 1), None),)))
    waves.close(10)
    assert engine.cancelled.is_set()
    assert len(ended) == 1


class Slow(InProcessEngine):
    """Its first wave goes on long after it was cancelled."""

    cancels = 0

    def process(self, wave: Wave) -> WaveResult:
        if wave.number == 1:
            eventually(lambda: self.cancels >= 3)
        return super().process(wave)

    def cancel(self) -> None:
        self.cancels += 1


def test_a_wave_that_is_cancelled_again_fails_its_batches_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stormline.runtime.coordination.wave_thread.CANCEL_AGAIN_SECS", 0.02)
    topology = line("t", numbers(10), 5, lambda b: b.set_bolt("store", Store("t")).global_grouping("spout"))
    plan = compile_topology(topology, {"topology.message.timeout.secs": 0.3, "topology.max.batch.attempts": 2})
    server = MemoryStateServer()
    handle = start_topology("t", plan, lambda lost: MemoryStateStore.open(server, "t", on_lost=lost), Slow)
    handle.await_drained(15)
    assert handle.snapshot().replays == 1
    handle.kill()
