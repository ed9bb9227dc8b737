"""Emitters in the driver: one object a task, made, called and closed in one thread; one that hangs is given up."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from stormline import (
    Fields,
    ICommitterTransactionalSpout,
    ITransactionalSpout,
    TransactionalTopologyBuilder,
    TransactionAttempt,
    compile_topology,
)
from stormline.errors import CallAbandoned
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from stormline.runtime.cluster.in_process_engine import InProcessEngine
from stormline.runtime.commit.commit_phase import CommitPhase
from stormline.runtime.coordination import loop_watch
from stormline.runtime.messages.wave import AttemptResult
from stormline.runtime.tasks.emitters import Emitters
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.runtime.world.world import REAL
from tests.kits.components import EVENTS, LEDGERS, Fault, Store, eventually

PENDING_3 = {"topology.max.spout.pending": 3}


class OnDriver(ITransactionalSpout, ICommitterTransactionalSpout):
    """One tuple a batch and task; its emitters are made by `make`."""

    def __init__(self, make: Any) -> None:
        self.make = make

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "value"))

    def get_coordinator(self, conf: Any, context: Any) -> Any:
        return self

    def is_ready(self) -> bool:
        return True

    def initialize_transaction(self, txid: int, prev_metadata: Any) -> Any:
        return txid

    def get_emitter(self, conf: Any, context: Any) -> Any:
        return self.make()


class Emitter:
    """Notes its calls, their threads, and those that come while another is under way."""

    made: list[Emitter]

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.threads = {threading.get_ident()}
        self.overlaps: list[str] = []
        self.inside = threading.Lock()
        self.closed = 0
        type(self).made.append(self)

    @contextmanager
    def noted(self, what: str, attempt: Any) -> Iterator[None]:
        self.calls.append((what, str(attempt)))
        self.threads.add(threading.get_ident())
        if not self.inside.acquire(blocking=False):
            self.overlaps.append(what)
            yield
            return
        try:
            yield
        finally:
            self.inside.release()

    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: Any) -> None:
        with self.noted("emit", attempt):
            collector.emit([attempt, metadata])
            EVENTS["never"].wait(0.002)

    def cleanup_before(self, txid: int) -> None:
        with self.noted("cleanup", txid):
            pass

    def commit(self, attempt: TransactionAttempt) -> None:
        with self.noted("commit", attempt):
            EVENTS["never"].wait(0.002)

    def close(self) -> None:
        self.threads.add(threading.get_ident())
        self.closed += 1


def the_same() -> Emitter:
    """Return one emitter, whoever asks."""
    return Emitter.made[0] if Emitter.made else Emitter()


@pytest.fixture(autouse=True)
def made() -> list[Emitter]:
    Emitter.made = []
    return Emitter.made


def topology_of(spout: Any, tasks: int = 1, store: Any = None) -> Any:
    builder = TransactionalTopologyBuilder("t", "spout", spout, tasks)
    builder.set_bolt("store", store or Store("t")).global_grouping("spout")
    return builder.build_topology()


@pytest.mark.parametrize("tasks", [1, 3])
def test_each_task_has_one_emitter_that_is_made_called_and_closed_in_one_thread(
    made: list[Emitter], tasks: int
) -> None:
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("t", PENDING_3, topology_of(OnDriver(Emitter), tasks))
        handle.await_committed(20, 20)
    assert len(made) == tasks
    assert len({thread for emitter in made for thread in emitter.threads}) == tasks
    for emitter in made:
        assert len(emitter.threads) == 1
        assert {what for what, _ in emitter.calls} == {"emit", "cleanup", "commit"}
        assert (emitter.overlaps, emitter.closed) == ([], 1)


def test_one_emitter_for_several_tasks_has_one_thread_for_its_calls_and_is_closed_once(made: list[Emitter]) -> None:
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("t", PENDING_3, topology_of(OnDriver(the_same), 2))
        handle.await_committed(20, 20)
    (one,) = made
    assert (len(one.threads), one.overlaps, one.closed) == (1, [], 1)


def test_cleanup_comes_after_each_emit_batch_with_the_last_committed_txid(made: list[Emitter]) -> None:
    with InProcessCluster() as cluster:
        topology = topology_of(OnDriver(Emitter), store=Store("t", Fault("before", 3, attempts=2)))
        cluster.submit_topology("t", {"topology.max.spout.pending": 1}, topology).await_committed(5, 20)
    calls = [call for call in made[0].calls if call[0] != "commit"]
    for (emit, attempt), (cleanup, committed) in zip(calls[::2], calls[1::2], strict=True):
        assert (emit, cleanup) == ("emit", "cleanup")
        assert int(committed) == int(attempt.split(":")[0]) - 1


class Connected(Emitter):
    """Holds a connection of SQLite's, which belongs to the thread that made it."""

    def __init__(self) -> None:
        super().__init__()
        self.db = sqlite3.connect(":memory:")
        self.db.execute("CREATE TABLE done (txid)")

    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: Any) -> None:
        collector.emit([attempt, self.db.execute("SELECT count(*) FROM done").fetchone()[0]])

    def commit(self, attempt: TransactionAttempt) -> None:
        self.db.execute("INSERT INTO done VALUES (?)", (attempt.transaction_id,))

    def close(self) -> None:
        LEDGERS["t"].trail += [txid for (txid,) in self.db.execute("SELECT txid FROM done")]
        self.db.close()


def test_an_emitter_may_hold_a_connection_of_its_thread() -> None:
    with InProcessCluster() as cluster:
        cluster.submit_topology("t", PENDING_3, topology_of(OnDriver(Connected))).await_committed(3, 20)
    assert LEDGERS["t"].trail[:3] == [1, 2, 3]


class HangsOnce(Emitter):
    """The first call of `where` for transaction 2 does not come back before it is told."""

    where = "commit"

    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: Any) -> None:
        super().emit_batch(attempt, metadata, collector)
        self.hang("emit", attempt)

    def commit(self, attempt: TransactionAttempt) -> None:
        with self.noted("commit", attempt):
            self.hang("commit", attempt)

    def hang(self, where: str, attempt: TransactionAttempt) -> None:
        if where == self.where and attempt == TransactionAttempt(2, 1):
            EVENTS["hangs"].set()
            EVENTS["go on"].wait(20)


class HangsAsItEmits(HangsOnce):
    where = "emit"


@pytest.mark.parametrize("kind", [HangsOnce, HangsAsItEmits])
def test_an_emitter_that_hangs_is_told_of_waited_for_and_goes_on_with_what_it_remembers(
    kind: Any, made: list[Emitter], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_watch, "LOOK_SECS", 0.01)
    monkeypatch.setattr(loop_watch, "HANGS_SECS", 0.1)
    config = {**PENDING_3, "topology.message.timeout.secs": 0.3}
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("t", config, topology_of(OnDriver(kind)))
        assert EVENTS["hangs"].wait(20)
        eventually(lambda: handle.snapshot().replays and "for an emitter; until it comes back" in caplog.text)
        assert "in hang" in caplog.text
        EVENTS["go on"].set()
        handle.await_committed(5, 30)
    (one,) = made
    assert (one.overlaps, one.closed) == ([], 1)
    applied = LEDGERS["t"].applied
    assert applied == sorted(set(applied)), "each once, in order"


def test_a_wave_that_was_cancelled_emits_nothing_more_and_the_emitter_stays(made: list[Emitter]) -> None:
    emitters = Emitters(REAL, lambda task: the_same(), in_threads=True)
    emitters.cancel_wave()
    with pytest.raises(CallAbandoned, match="the wave was cancelled"):
        emitters.emit(1, lambda emitter: None)
    emitters.begin_wave()
    assert emitters.emit(1, lambda emitter: emitter) is made[0]
    for close in emitters.closes():
        close()
    assert made[0].closed == 1


def test_a_commit_that_is_abandoned_while_the_emitter_emits_is_not_begun_afterwards(made: list[Emitter]) -> None:
    env = TaskEnvironment(compile_topology(topology_of(OnDriver(the_same))), 1)
    run = CommitPhase(env, AttemptResult(TransactionAttempt(1, 1)), InProcessEngine(env))
    go_on, failures = threading.Event(), []
    emitting = threading.Thread(target=lambda: env.emitters.emit(1, lambda emitter: go_on.wait(20)))
    emitting.start()
    eventually(env.emitters.running)
    committing = threading.Thread(target=lambda: failures.append(run.run()))
    committing.start()
    eventually(lambda: len(env.emitters._distinct()[0].thread._calls) == 2)  # type: ignore[union-attr]
    run.abandon()
    committing.join()
    go_on.set()
    emitting.join()
    assert failures[0] is not None
    assert "it was abandoned" in failures[0].message
    assert made[0].calls == []
    assert env.emitters.emit(1, lambda emitter: emitter) is made[0], "it emits on"
    env.close()


class Overtaken(dict[Any, Any]):
    """While one thread has found nothing, and makes its own, another one comes first."""

    def __init__(self, comes: Callable[[], Any]) -> None:
        super().__init__()
        self.comes: list[Callable[[], Any]] = [comes]
        self.got: list[Any] = []

    def get(self, key: Any, default: Any = None) -> Any:
        found = super().get(key, default)
        if found is None and self.comes:
            self.got.append(self.comes.pop()())
        return found


def test_two_threads_that_ask_for_a_task_at_once_get_one_context_and_one_conf() -> None:
    env = TaskEnvironment(compile_topology(topology_of(OnDriver(the_same))), 1)
    task = env.plan.spout.tasks[0]
    confs = env._confs = Overtaken(lambda: env.conf("spout"))
    contexts = env._contexts = Overtaken(lambda: env.context("spout", task))
    conf, context = env.conf("spout"), env.context("spout", task)
    assert confs.got[0] is conf
    assert contexts.got[0] is context
