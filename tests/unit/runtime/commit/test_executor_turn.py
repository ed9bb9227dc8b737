"""Commits on the executors: what is refused, what counts as complete, and what a turn that came to nothing means."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stormline import Config, TransactionAttempt, compile_topology
from stormline.runtime.cluster.in_process_engine import InProcessEngine
from stormline.runtime.cluster.submission import start_topology
from stormline.runtime.cluster.topology_handle import TopologyHandle
from stormline.runtime.commit.commit_phase import CommitTask
from stormline.runtime.commit.executor_messages import (
    packed,
    read_part,
    read_reply,
    seal_reply,
    second_execution,
    split,
)
from stormline.runtime.commit.executor_part import ExecutorPart
from stormline.runtime.errors import EngineStopped, TopologyFailed
from stormline.runtime.messages.commit_request import CommitRequest, PartReply, RemoteTask, TaskReply
from stormline.runtime.messages.engine import EngineFailure
from stormline.runtime.messages.wave import AttemptResult, DeferredTask
from stormline.runtime.state.memory_store import MemoryStateServer, MemoryStateStore
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.runtime.tuples.delivery import Delivery
from stormline.runtime.tuples.packing import Packed
from stormline.topology.errors import CorruptData
from tests.kits.components import eventually, line, numbers
from tests.kits.placement import FencedStore, Keep

ATTEMPT = TransactionAttempt(7, 3)


def environment(path: Path, tasks: int = 2) -> TaskEnvironment:
    topology = line(
        "t", numbers(20), 5, lambda b: b.set_bolt("store", Keep(path), tasks).fields_grouping("spout", ["value"])
    )
    return TaskEnvironment(compile_topology(topology, {Config.TOPOLOGY_COMMIT_PLACEMENT: "executors"}), 4)


def request(tasks: int = 5) -> CommitRequest:
    delivery = Delivery(0, 1, 2, Packed(3, b"packed"))
    return CommitRequest(
        ATTEMPT,
        ("a", "b"),
        tuple(RemoteTask(task, DeferredTask(b"gathered", [delivery])) for task in range(tasks)),
    )


# ---------------------------------------------------------------------------------------- one execution


def test_a_spark_task_that_spark_has_begun_before_is_refused() -> None:
    assert second_execution(0) is None
    assert second_execution(1) == (
        "this Spark task may have run before (attempt number 1 of Spark's): nothing is run twice"
    )


def test_a_refused_spark_task_runs_no_user_code_and_does_not_even_look_at_its_input(tmp_path: Path) -> None:
    store = FencedStore(tmp_path / "store")
    env = environment(store.path)
    for sealed in [*split(CommitRequest(ATTEMPT, ("store",), (RemoteTask(2, DeferredTask()),)), 1), b"not a part"]:
        slot = ExecutorPart(env, sealed, spark_attempt=1)
        slot.run()
        reply = read_reply(slot.sealed_reply())
        assert reply == PartReply(None, refusal=second_execution(1))
    assert not store.path.exists()


# ---------------------------------------------------------------------------------------- completeness


def test_tasks_are_dealt_out_to_at_most_as_many_parts_as_asked() -> None:
    parts = [read_part(sealed) for sealed in split(request(5), 2)]
    assert [[task.task for task in part.tasks] for part in parts] == [[0, 2, 4], [1, 3]]
    assert [len(split(request(5), n)) for n in (1, 4, 64)] == [1, 4, 5]
    assert all(part.attempt == ATTEMPT for part in parts)
    assert request().title == "commit of txid 7: a, b"


def test_a_part_or_a_reply_that_was_cut_or_changed_is_noticed() -> None:
    (part,) = split(request(), 1)
    reply = seal_reply(PartReply(ATTEMPT, (TaskReply(2), TaskReply(3))))
    readers: list[tuple[bytes, Callable[[bytes], Any]]] = [(part, read_part), (reply, read_reply)]
    for sealed, read in readers:
        read(sealed)
        for wrong in (sealed[:-1], sealed[:-1] + bytes([sealed[-1] ^ 1]), sealed[:20]):
            with pytest.raises(CorruptData, match=r"a part of a commit with \d bolt tasks and \d+ tuples was cut or"):
                read(wrong)
        with pytest.raises(CorruptData, match=r"3 bytes are no part of a commit"):
            read(sealed[:3])
        other = sealed[:7] + bytes([9]) + sealed[8:]
        with pytest.raises(CorruptData, match=r"should (hold|speak for) 9 bolt tasks and \d+ tuples does not"):
            read(other)
    with pytest.raises(CorruptData, match=r"was cut or changed"):
        read_part(reply)


def test_a_part_that_was_cut_runs_nothing_and_says_so(tmp_path: Path) -> None:
    env = environment(tmp_path / "store")
    (sealed,) = split(CommitRequest(ATTEMPT, ("store",), (RemoteTask(2, DeferredTask()),)), 1)
    slot = ExecutorPart(env, sealed[:-2], 0)
    slot.run()
    assert read_reply(slot.sealed_reply()).refusal == (
        "a part of a commit with 1 bolt tasks and 0 tuples was cut or changed"
    )
    assert not (tmp_path / "store").exists()


def test_tuples_that_are_not_all_there_are_noticed(tmp_path: Path) -> None:
    env = environment(tmp_path / "store")
    (whole,) = packed([Delivery(0, 1, 2, [[ATTEMPT, 1], [ATTEMPT, 2]])], env)
    assert packed([whole], env) == [whole]
    assert isinstance(whole.tuples, Packed)
    assert whole.tuples.unpack_whole(ATTEMPT, env.registry) == [[ATTEMPT, 1], [ATTEMPT, 2]]
    short = whole._replace(tuples=Packed(3, whole.tuples.data))
    task = CommitTask(env, env.plan.components["store"], 2, AttemptResult(ATTEMPT), env.participants(ATTEMPT, ""))
    env.work_on({ATTEMPT: 1}, 6)
    task.run([short])
    assert task.failure is not None
    assert "3 tuples were packed, and 2 came out" in task.failure.message
    assert not (tmp_path / "store").exists()


# ---------------------------------------------------------------------------------------- turns


class MeddlingEngine(InProcessEngine):
    """Commits as the test says, the first times."""

    def __init__(self, env: TaskEnvironment, meddle: list[Callable[[list[bytes]], list[bytes]]]) -> None:
        super().__init__(env)
        self.meddle = meddle
        self.commits: list[TransactionAttempt] = []

    def commit(self, request: CommitRequest) -> list[bytes]:
        self.commits.append(request.attempt)
        replies = super().commit(request)
        return self.meddle.pop(0)(replies) if self.meddle else replies


def run(path: Path, *meddle: Callable[[list[bytes]], list[bytes]]) -> tuple[TopologyHandle, MeddlingEngine]:
    plan = environment(path).plan
    server = MemoryStateServer()
    engines: list[MeddlingEngine] = []

    def make(env: TaskEnvironment) -> MeddlingEngine:
        engines.append(MeddlingEngine(env, list(meddle)))
        return engines[0]

    handle = start_topology("t", plan, lambda lost: MemoryStateStore.open(server, "t", on_lost=lost), make)
    return handle, engines[0]


def fails(lasting: bool) -> Callable[[list[bytes]], list[bytes]]:
    def meddle(replies: list[bytes]) -> list[bytes]:
        raise EngineFailure("executor lost", lasting)

    return meddle


def refused(replies: list[bytes]) -> list[bytes]:
    return [replies[0], seal_reply(PartReply(None, refusal=second_execution(2)))]


@pytest.mark.parametrize(
    ("meddle", "message"),
    [
        (lambda replies: replies[:1], "commit of txid 1: store: 1 of 2 bolt tasks have not replied"),
        (lambda replies: [], "commit of txid 1: store: 2 of 2 bolt tasks have not replied"),
        (lambda replies: [replies[0], replies[1][:-1]], "was cut or changed"),
        (refused, "this Spark task may have run before (attempt number 2 of Spark's)"),
        (fails(lasting=False), "commit of txid 1: store came to nothing: executor lost"),
    ],
)
def test_a_turn_that_is_not_known_to_be_complete_is_replayed_under_a_new_token_and_counts_once(
    tmp_path: Path, caplog: Any, meddle: Any, message: str
) -> None:
    caplog.set_level("INFO", "stormline")
    store = FencedStore(tmp_path / "store")
    handle, engine = run(store.path, meddle)
    handle.await_drained(20)
    handle.kill()
    assert engine.commits[:2] == [TransactionAttempt(1, 1), TransactionAttempt(1, 2)]
    assert message in caplog.text
    assert sorted(store.values()) == list(range(20))
    store.check_tokens()


def test_an_engine_that_can_never_run_it_stops_the_topology(tmp_path: Path) -> None:
    handle, _ = run(tmp_path / "store", fails(lasting=True))
    message = (
        r"topology 't' stopped: commit of txid 1: store came to nothing: executor lost \(transaction 1:1\); nothing"
    )
    with pytest.raises(TopologyFailed, match=message):
        handle.await_drained(20)


def test_a_commit_that_is_lost_again_and_again_stops_the_topology(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("stormline.runtime.coordination.retry_backoff.UNCOUNTED_FAILURES_MAX", 1)
    handle, _ = run(tmp_path / "store", *[fails(lasting=False)] * 9)
    with pytest.raises(EngineStopped, match=r"failed 4 times in a row through no fault of its own.*executor lost"):
        handle.await_drained(20)


class Cancels(InProcessEngine):
    """Notes what is cancelled, and cannot do it."""

    def __init__(self, env: TaskEnvironment) -> None:
        super().__init__(env)
        self.cancelled: list[TransactionAttempt] = []

    def cancel_commit(self, attempt: TransactionAttempt) -> None:
        super().cancel_commit(attempt)
        self.cancelled.append(attempt)
        raise ConnectionError("Spark has gone")


class Waits(Keep):
    def finish_batch(self) -> None:
        FencedStore(self.path).note_begin(self.context, self.attempt)
        if self.attempt.attempt_id == 1:
            assert GO_ON.wait(20)
        super().finish_batch()


GO_ON = threading.Event()


def test_a_commit_that_is_abandoned_is_cancelled_there_too(tmp_path: Path, caplog: Any) -> None:
    GO_ON.clear()
    store = FencedStore(tmp_path / "store")
    config = {Config.TOPOLOGY_COMMIT_PLACEMENT: "executors", "topology.message.timeout.secs": 0.5}
    topology = line("t", {0: [1]}, 1, lambda b: b.set_bolt("store", Waits(store.path)).shuffle_grouping("spout"))
    server = MemoryStateServer()
    engines: list[Cancels] = []

    def make(env: TaskEnvironment) -> Cancels:
        engines.append(Cancels(env))
        return engines[0]

    plan = compile_topology(topology, config)
    handle = start_topology("t", plan, lambda lost: MemoryStateStore.open(server, "t", on_lost=lost), make)
    eventually(lambda: bool(engines[0].cancelled))
    GO_ON.set()
    handle.await_drained(20)
    handle.kill()
    assert engines[0].cancelled[0] == TransactionAttempt(1, 1)
    assert "cancelling the commit of 1:1 on the executors" in caplog.text
    assert handle.txid_committed == 1
