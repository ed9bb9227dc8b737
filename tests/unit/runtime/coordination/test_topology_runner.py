"""The runner against a store and an engine that fail on order."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from stormline import StormlineError, TransactionalTopologyBuilder, compile_topology
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from stormline.runtime.cluster.in_process_engine import InProcessEngine
from stormline.runtime.cluster.submission import start_topology
from stormline.runtime.cluster.topology_handle import TopologyHandle
from stormline.runtime.coordination import topology_runner
from stormline.runtime.coordination.progress import Snapshot
from stormline.runtime.coordination.stop_reasons import fatal_error
from stormline.runtime.errors import EngineStopped, Fenced, SessionLost, TopologyFailed, WaitsForItself
from stormline.runtime.messages.engine import EngineFailure
from stormline.runtime.messages.wave import Failure, Wave, WaveResult
from stormline.runtime.state.memory_store import MemoryStateServer, MemoryStateStore
from stormline.runtime.state.state_store import Op, Put
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.runtime.tasks.user_code import failure_of
from stormline.runtime.world.world import REAL
from tests.kits.components import EVENTS, LEDGERS, Basic, Batch, Fault, Store, eventually, line, numbers
from tests.kits.spouts import ChangingOpaqueSpout


class FaultyEngine(InProcessEngine):
    """Fails the first waves as it is told."""

    def __init__(self, env: TaskEnvironment, failures: list[EngineFailure | Exception]) -> None:
        super().__init__(env)
        self.failures = failures
        self.sizes: list[int] = []

    def process(self, wave: Wave) -> WaveResult:
        self.sizes.append(len(wave.attempts))
        if self.failures:
            raise self.failures.pop(0)
        return super().process(wave)


def simple(topology_id: str = "t") -> Any:
    return line(topology_id, numbers(40), 5, lambda b: b.set_bolt("store", Store("t")).shuffle_grouping("spout"))


def start(failures: list[EngineFailure | Exception]) -> tuple[TopologyHandle, FaultyEngine]:
    server = MemoryStateServer()
    plan = compile_topology(simple(), {"topology.max.spout.pending": 4, "topology.max.batch.attempts": 2})
    engines: list[FaultyEngine] = []

    def make(env: TaskEnvironment) -> FaultyEngine:
        engines.append(FaultyEngine(env, failures))
        return engines[0]

    handle = start_topology("t", plan, lambda lost: MemoryStateStore.open(server, "t", on_lost=lost), make)
    return handle, engines[0]


def test_a_wave_that_comes_to_nothing_is_replayed_in_smaller_waves_and_is_not_held_against_its_batches() -> None:
    handle, engine = start([EngineFailure("executor lost"), EngineFailure("executor lost")])
    handle.await_drained(30)
    assert sorted(LEDGERS["t"].all()) == list(range(40))
    assert engine.sizes[:3] == [4, 2, 1]
    assert max(engine.sizes) <= 4
    handle.kill()


@pytest.mark.parametrize(
    ("failures", "message"),
    [
        ([EngineFailure("no module 'x' on the executors", lasting=True)], r"1 time\(s\) in a row: no module 'x'"),
        ([EngineFailure("executor lost")] * 9, r"8 time\(s\) in a row: executor lost"),
        ([RuntimeError("a bug of ours")], r"RuntimeError: a bug of ours"),
    ],
)
def test_an_engine_that_cannot_go_on_stops_the_topology(
    failures: list[EngineFailure | Exception], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stormline.runtime.coordination.retry_backoff.ENGINE_WAIT_SECS", 0.001)
    handle, _ = start(failures)
    with pytest.raises(EngineStopped, match=message):
        handle.await_drained(30)


def test_while_the_connection_is_suspended_no_commit_begins() -> None:
    server = MemoryStateServer()
    rows: dict[int, list[Any]] = {0: []}
    topology = line("t", rows, 1, lambda b: b.set_bolt("store", Store("t")).shuffle_grouping("spout"))
    with InProcessCluster(server) as cluster:
        handle = cluster.submit_topology("t", {}, topology)
        server.suspend("t")
        rows[0] += [1, 2]
        time.sleep(0.3)
        assert LEDGERS["t"].finished == []
        server.suspend("t", False)
        handle.await_drained(30)
        assert sorted(LEDGERS["t"].all()) == [1, 2]


def test_a_lost_session_stops_the_topology_and_another_driver_goes_on() -> None:
    server = MemoryStateServer()
    with InProcessCluster(server) as cluster:
        handle = cluster.submit_topology("t", {}, simple())
        handle.await_drained(30)
        server.expire("t")
        eventually(lambda: not handle.running)
        assert isinstance(handle.error, SessionLost)
        with pytest.raises(SessionLost, match=r"session of topology 't' has expired"):
            handle.await_committed(99, 1)
        again = cluster.submit_topology("t", {}, simple())
        again.await_drained(30)


def test_a_driver_that_was_taken_over_unawares_begins_no_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    server = MemoryStateServer()
    rows: dict[int, list[Any]] = {0: [1]}
    topology = line("t", rows, 1, lambda b: b.set_bolt("store", Store("t")).shuffle_grouping("spout"))
    monkeypatch.setattr("stormline.runtime.coordination.commit_queue.PROOF_SECS", 0.0)
    with InProcessCluster(server) as cluster:
        handle = cluster.submit_topology("t", {}, topology)
        handle.await_drained(30)
        finished = len(LEDGERS["t"].finished)
        server.vanish("t")
        MemoryStateStore.open(server, "t", description=compile_topology(topology).describe()).close()
        rows[0].append(2)
        eventually(lambda: not handle.running)
        assert isinstance(handle.error, Fenced)
        assert len(LEDGERS["t"].finished) == finished


def test_a_stale_batch_of_an_opaque_spout_is_not_taken_for_one_whose_commit_began() -> None:
    """Batches 2 to 4 are fixed; 2 fails at its commit, 3 comes back greater, 4 fails before it is fixed again."""
    server = MemoryStateServer()
    spout = ChangingOpaqueSpout()
    spout.available, spout.take, spout.batches_ahead_max = list(range(20)), 2, 9
    config = {"topology.max.spout.pending": 4}

    def topology(bolt_fault: Fault) -> Any:
        builder = TransactionalTopologyBuilder("t", "spout", spout)
        builder.set_bolt("x", Batch(bolt_fault)).shuffle_grouping("spout")
        builder.set_bolt("store", Widening("t", Fault("after", txid=2))).shuffle_grouping("x")
        return builder.build_topology()

    class Widening(Store):
        def finish_batch(self) -> None:
            if self.attempt.transaction_id == 2:
                spout.take = 3
            super().finish_batch()

    with InProcessCluster(server) as cluster:
        first = cluster.submit_topology("t", config, topology(Fault("finish_batch", txid=4, attempts=99, spared=1)))
        eventually(lambda: first.txid_committed == 3 and first.snapshot().replays > 4)
        first.kill()
        second = cluster.submit_topology("t", config, topology(Fault("nowhere")))
        second.await_drained(20)
        assert LEDGERS["t"].all() == list(range(20))


def test_what_defined_later_batches_is_withdrawn_before_earlier_ones_are_fixed_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Fixing them anew may take several writes: 3 must not end elsewhere than the 4 that is found beside it begins."""
    puts: dict[int, list[bool]] = {3: [], 4: []}
    write = MemoryStateStore.write

    def spy(store: MemoryStateStore, ops: Sequence[Op]) -> None:
        for op in ops:
            if isinstance(op, Put) and op.path in ("batches/000000000003", "batches/000000000004"):
                puts[int(op.path[-1])].append(op.value["fixed"])
        write(store, ops)

    monkeypatch.setattr(MemoryStateStore, "write", spy)
    spout = ChangingOpaqueSpout()
    spout.available, spout.take, spout.batches_ahead_max = list(range(8)), 2, 9
    builder = TransactionalTopologyBuilder("t", "spout", spout)
    builder.set_bolt("store", Store("t", Fault("after", txid=2))).shuffle_grouping("spout")
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("t", {"topology.max.spout.pending": 4}, builder.build_topology())
        handle.await_drained(20)
    assert LEDGERS["t"].all() == list(range(8))
    assert puts == {3: [False, True, True], 4: [False, True, False, True]}


class PreparesForLong(Basic):
    """Its first prepare waits, as for a host that does not answer."""

    def prepare(self, conf: Any, context: Any) -> None:
        if not EVENTS["prepares"].is_set():
            EVENTS["prepares"].set()
            EVENTS["prepared"].wait(30)


@pytest.mark.parametrize("timeouts", [True, False])
def test_a_topology_whose_bolt_hangs_in_prepare_at_the_commit_can_be_killed_and_goes_on_when_it_is_submitted_again(
    timeouts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topology_runner, "COMMIT_END_SECS", 0.2)
    topology = line(
        "t",
        numbers(8),
        1,
        lambda b: b.set_bolt("store", Store("t")).global_grouping("spout"),
        lambda b: b.set_bolt("after", PreparesForLong()).global_grouping("store"),
    )
    config = {
        "topology.message.timeout.secs": 0.2,
        "topology.enable.message.timeouts": timeouts,
        "topology.max.spout.pending": 2,
    }
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("t", config, topology)
        assert EVENTS["prepares"].wait(10)
        handle.kill(20)
        assert handle.txid_committed == 0, "it was waited for, and not overtaken"
        EVENTS["prepared"].set()
        cluster.submit_topology("t", config, topology).await_drained(20)
    assert sorted(LEDGERS["t"].all()) == list(range(8))


class HangingAtClose(InProcessEngine):
    """Its close waits, as Spark does for a job's cores when all workers are gone."""

    gate: threading.Event

    def close(self) -> None:
        self.gate.wait(30)
        super().close()


def test_what_hangs_while_it_closes_keeps_neither_the_topology_nor_who_waits_for_its_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("stormline.runtime.coordination.shutdown.CLOSE_SECS", 0.1)
    monkeypatch.setattr(HangingAtClose, "gate", threading.Event(), raising=False)
    server, plan = MemoryStateServer(), compile_topology(simple())
    handle = start_topology("t", plan, lambda lost: MemoryStateStore.open(server, "t", on_lost=lost), HangingAtClose)
    handle.await_drained(30)
    handle.kill(10)
    assert not handle.running
    MemoryStateStore.open(server, "t").close()
    assert "closing the components of topology t takes more than 0.1 s" in caplog.text
    HangingAtClose.gate.set()


class Misled(Batch):
    def finish_batch(self) -> None:
        raise Teaching("what was got; what was expected")


class Teaching(StormlineError):
    """An error whose message says it all, raised by code of ours: see below."""


def test_an_error_of_ours_without_a_frame_of_the_user_is_told_in_one_line() -> None:
    failure = failure_of(Teaching("got; expected; remedy"), "spout", None, "the coordinator")
    assert failure.traceback == ""
    message = str(fatal_error(REAL, "t", None, failure))
    assert message.startswith("topology 't' stopped: Teaching in the coordinator of 'spout': got; expected; remedy; ")
    assert "\n" not in message


def test_an_error_of_ours_raised_below_a_frame_of_the_user_shows_that_frame() -> None:
    with InProcessCluster() as cluster:
        topology = line("t", numbers(4), 1, lambda b: b.set_bolt("x", Misled()).shuffle_grouping("spout"))
        handle = cluster.submit_topology("t", {}, topology)
        with pytest.raises(TopologyFailed, match=r"(?s)\ATraceback.*in finish_batch\n.*what was got"):
            handle.await_drained(20)


def test_progress_is_told_once_a_wave() -> None:
    seen: list[Any] = []
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("t", {"topology.max.spout.pending": 2}, simple(), on_wave=seen.append)
        handle.await_drained(30)
    assert [snapshot.waves for snapshot in seen] == list(range(1, len(seen) + 1))
    assert seen[-1].topology == "t"
    assert handle.snapshot().txid_committed == 4
    assert handle.snapshot().tuples_per_sec > 0


def test_who_is_told_of_waves_may_stop_the_topology_and_is_told_not_to_wait_for_it() -> None:
    handles: list[TopologyHandle] = []
    refused: list[str] = []

    def on_wave(snapshot: Snapshot) -> None:
        if not handles:
            return
        for wait in (handles[0].await_drained, partial(handles[0].await_committed, 1)):
            with pytest.raises(WaitsForItself) as caught:
                wait()
            refused.append(str(caught.value))
        handles[0].kill()

    with InProcessCluster() as cluster:
        topology = line("t", numbers(40), 1, lambda b: b.set_bolt("store", Store("t")).shuffle_grouping("spout"))
        handles.append(cluster.submit_topology("t", {"topology.max.spout.pending": 1}, topology, on_wave=on_wave))
        eventually(lambda: not handles[0].running)
        assert handles[0].error is None
        assert handles[0].txid_committed < 40
    assert refused[0].startswith(
        "topology 't': on_wave waits for the spout to be drained, in the topology's own thread"
    )
    assert "on_wave waits for transaction 1 to be committed" in refused[1]


def test_waves_wait_until_half_of_all_transactions_find_place() -> None:
    handle, engine = start([])
    handle.await_drained(30)
    handle.kill()
    assert sum(engine.sizes) == 4
    with InProcessCluster() as cluster:
        config = {"topology.max.spout.pending": 8}
        topology = line("w", numbers(400), 5, lambda b: b.set_bolt("store", Store("w")).shuffle_grouping("spout"))
        waves = cluster.submit_topology("w", config, topology)
        waves.await_drained(30)
        assert waves.snapshot().transactions == 40
        assert waves.snapshot().waves <= 10


class CutEngine(InProcessEngine):
    """Whatever is sent between slots is lost."""

    def process(self, wave: Wave) -> WaveResult:
        result = super().process(wave)
        for attempt in result.attempts:
            attempt.failure = Failure("store", None, "input of stage 1 was cut", counts=False)
        return result


def test_input_that_is_cut_for_ever_stops_the_topology_in_the_end() -> None:
    server = MemoryStateServer()
    plan = compile_topology(simple(), {"topology.max.batch.attempts": 1})
    handle = start_topology("t", plan, lambda lost: MemoryStateStore.open(server, "t", on_lost=lost), CutEngine)
    with pytest.raises(EngineStopped, match=r"failed 23 times in a row through no fault of its own.*was cut"):
        handle.await_drained(30)
