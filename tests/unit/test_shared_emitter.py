"""An emitter that emits and commits in the driver: one call at a time, and another emitter where a call hangs."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
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
from stormline.runtime.commit_runner import CommitRun
from stormline.runtime.engine import InProcessEngine
from stormline.runtime.in_process_cluster import InProcessCluster
from stormline.runtime.shared_emitter import SharedEmitter
from stormline.runtime.task_environment import TaskEnvironment
from stormline.runtime.wave import AttemptResult
from tests.kit import EVENTS, LEDGERS, Store, eventually

PENDING_3 = {"topology.max.spout.pending": 3}


@contextmanager
def beside(call: Any) -> Iterator[threading.Thread]:
    """Run a call in another thread, which is at its end afterwards."""
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    yield thread
    thread.join(10)
    assert not thread.is_alive()


# ---------------------------------------------------------------------------------------- turns


def test_turns_are_given_one_at_a_time_in_the_order_in_which_they_were_asked_for() -> None:
    shared, order = SharedEmitter(None), []

    def call(name: str) -> None:
        with shared.turn(name, lambda: True) as mine:
            order.append((name, mine))

    with ExitStack() as threads, ExitStack() as turn:
        mine = turn.enter_context(shared.turn("first", lambda: True))
        for waiting, name in enumerate(("second", "third"), 2):
            threads.enter_context(beside(partial(call, name)))
            eventually(lambda waiting=waiting: len(shared._callers) == waiting)
        order.append(("first", mine))
    assert order == [("first", True), ("second", True), ("third", True)]
    assert shared.idle


def test_who_withdraws_while_another_has_its_turn_gets_none_and_takes_none_away() -> None:
    shared, got, wanted = SharedEmitter(None), [], [True]

    def call() -> None:
        with shared.turn("later", lambda: wanted[0]) as mine:
            got.append(mine)

    with shared.turn("now", lambda: True), beside(call):
        eventually(lambda: len(shared._callers) == 2)
        wanted[0] = False
        shared.withdraw("later")
        eventually(lambda: got)
    assert got == [False]
    assert not shared.given_up


def test_who_withdraws_in_its_turn_gives_the_emitter_up_for_all_who_wait() -> None:
    shared, got = SharedEmitter(None), []

    def call() -> None:
        with shared.turn("later", lambda: True) as mine:
            got.append(mine)

    with shared.turn("now", lambda: True), beside(call):
        eventually(lambda: len(shared._callers) == 2)
        shared.withdraw("now")
        eventually(lambda: got)
        assert not shared.idle
    assert (got, shared.given_up, shared.idle) == ([False], True, True)


# ---------------------------------------------------------------------------------------- a spout in the driver


class OnDriver(ITransactionalSpout, ICommitterTransactionalSpout):
    """Three tuples a batch; its emitters are made by `make`."""

    emits_on_driver = True

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

    def close(self) -> None: ...


class Emitter:
    """Notes its calls, and those that come while another is under way."""

    made: list[Emitter]

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.overlaps: list[str] = []
        self.inside = threading.Lock()
        self.closed = 0
        type(self).made.append(self)

    @contextmanager
    def noted(self, what: str, attempt: TransactionAttempt) -> Iterator[None]:
        self.calls.append((what, str(attempt)))
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

    def commit(self, attempt: TransactionAttempt) -> None:
        with self.noted("commit", attempt):
            EVENTS["never"].wait(0.002)

    def close(self) -> None:
        self.closed += 1


def the_same() -> Emitter:
    """Return one emitter, whoever asks."""
    return Emitter.made[0] if Emitter.made else Emitter()


@pytest.fixture(autouse=True)
def made() -> list[Emitter]:
    Emitter.made = []
    return Emitter.made


def topology_of(spout: Any, tasks: int = 1) -> Any:
    builder = TransactionalTopologyBuilder("t", "spout", spout, tasks)
    builder.set_bolt("store", Store("t")).global_grouping("spout")
    return builder.build_topology()


@pytest.mark.parametrize("tasks", [1, 2])
def test_an_emitter_in_the_driver_is_never_called_by_two_threads_at_once(made: list[Emitter], tasks: int) -> None:
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("t", PENDING_3, topology_of(OnDriver(the_same), tasks))
        handle.await_committed(20, 20)
    (one,) = made
    assert {what for what, _ in one.calls} == {"emit", "commit"}
    assert one.overlaps == []
    assert one.closed == tasks


class Connected(Emitter):
    """Holds a connection of SQLite's, as docs/porting.md says."""

    def __init__(self) -> None:
        super().__init__()
        self.db = sqlite3.connect(":memory:", check_same_thread=False)
        self.db.execute("CREATE TABLE done (txid)")

    def commit(self, attempt: TransactionAttempt) -> None:
        self.db.execute("INSERT INTO done VALUES (?)", (attempt.transaction_id,))

    def close(self) -> None:
        LEDGERS["t"].trail += [txid for (txid,) in self.db.execute("SELECT txid FROM done")]
        self.db.close()


def test_an_emitter_in_the_driver_may_hold_a_connection_that_several_threads_may_use() -> None:
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("t", PENDING_3, topology_of(OnDriver(Connected)))
        handle.await_committed(3, 20)
    assert LEDGERS["t"].trail[:3] == [1, 2, 3]


class HangsOnce(Emitter):
    """The first commit of transaction 2 does not come back before it is told."""

    def commit(self, attempt: TransactionAttempt) -> None:
        with self.noted("commit", attempt):
            if attempt == TransactionAttempt(2, 1):
                EVENTS["go on"].wait(20)


def test_where_a_commit_hangs_another_emitter_emits_what_is_not_committed_and_commits_it(
    made: list[Emitter], caplog: pytest.LogCaptureFixture
) -> None:
    config = {**PENDING_3, "topology.message.timeout.secs": 0.3}
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("t", config, topology_of(OnDriver(HangsOnce)))
        handle.await_committed(5, 20)
        EVENTS["go on"].set()
        first, second = made
        eventually(lambda: not first.inside.locked())
    assert first.overlaps == second.overlaps == []
    assert [call for call in first.calls if call[0] == "commit"] == [("commit", "1:1"), ("commit", "2:1")]
    emitted = {attempt for what, attempt in second.calls if what == "emit"}
    committed = [attempt for what, attempt in second.calls if what == "commit"]
    assert committed[0].startswith("2:")
    assert set(committed) <= emitted
    assert (first.closed, second.closed) == (1, 1)
    assert "the emitter of spout 'spout', task 1, has not come back from its commit, which was abandoned" in caplog.text


def test_a_commit_that_is_abandoned_while_the_emitter_emits_is_not_begun_afterwards() -> None:
    one = the_same()
    env = TaskEnvironment(compile_topology(topology_of(OnDriver(the_same))), 1)
    run = CommitRun(env, AttemptResult(TransactionAttempt(1, 1)), InProcessEngine(env))
    failures: list[Any] = []
    with env.emitting(1) as emitter, beside(lambda: failures.append(run.run())):
        assert emitter is one
        eventually(lambda: len(env._emitters[1]._callers) == 2)
        run.abandon()
        eventually(lambda: failures)
    assert "it was abandoned" in failures[0].message
    assert one.calls == []
    with env.emitting(1) as emitter:
        assert emitter is one


@pytest.mark.parametrize(("make", "closed"), [(Emitter, [0, 1]), (the_same, [1])])
def test_an_emitter_that_was_given_up_and_does_not_come_back_is_not_closed_unless_it_is_the_new_one_too(
    made: list[Emitter], make: Any, closed: list[int]
) -> None:
    env = TaskEnvironment(compile_topology(topology_of(OnDriver(make))), 1)
    with env.emitter_turn(1, "hangs", lambda: True):
        env.withdraw("hangs")
        with env.emitting(1) as again:
            assert again is made[-1]
        env.close()
    assert [emitter.closed for emitter in made] == closed
