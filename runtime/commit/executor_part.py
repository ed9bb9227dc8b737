"""ExecutorPart: what one Spark task of a commit does: prepares its bolts, executes what is left, and finishes them."""

from __future__ import annotations

from functools import partial

from stormline.runtime.commit.commit_phase import CommitTask
from stormline.runtime.commit.executor_messages import (
    Delivery,
    pack_deliveries,
    read_part,
    seal_reply,
    second_execution,
    unpack_deliveries,
)
from stormline.runtime.messages.commit_request import CommitPart, PackedDelivery, PartReply, RemoteTask, TaskReply
from stormline.runtime.messages.wave import AttemptResult, Failure
from stormline.runtime.tasks.commit_participants import CommitParticipants
from stormline.runtime.tasks.commit_threads import COMMIT_THREADS_MAX
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.runtime.tasks.user_code import run_guarded
from stormline.runtime.world.daemon_threads import run_side_by_side
from stormline.topology.errors import CorruptData


class ExecutorPart:
    """One part of one turn of a commit. Runs user code at most once, and none where Spark has begun it before.

    Its bolt tasks run side by side in threads. `spark_attempt`: Spark's own number of this execution of the Spark task.
    """

    def __init__(self, env: TaskEnvironment, sealed: bytes, spark_attempt: int) -> None:
        self._env = env
        self._sealed = sealed
        self._spark_attempt = spark_attempt
        self._tasks: list[CommitTask] = []
        self._abandoned = False
        self._reply = PartReply(None)

    def run(self) -> None:
        """Run the part to its end."""
        refusal = second_execution(self._spark_attempt)
        if refusal is not None:
            self._reply = PartReply(None, refusal=refusal)
            return
        try:
            part = read_part(self._sealed)
        except CorruptData as error:
            self._reply = PartReply(None, refusal=str(error))
            return
        self._reply = PartReply(part.attempt, self._run_part(part))

    def sealed_reply(self) -> bytes:
        """Return what became of it."""
        return seal_reply(self._reply)

    def _run_part(self, part: CommitPart) -> tuple[TaskReply, ...]:
        env = self._env
        env.work_on({part.attempt: part.commit_id}, committed=part.attempt.transaction_id - 1)
        result = AttemptResult(part.attempt, deferred={given.task: given.deferred for given in part.tasks})
        participants = [env.participants(part.attempt, self._scope(given.task)) for given in part.tasks]
        self._tasks = [
            CommitTask(env, env.plan.components[env.component_of(given.task)], given.task, result, its_own)
            for given, its_own in zip(part.tasks, participants, strict=True)
        ]
        if self._abandoned:
            return ()
        replies: list[TaskReply] = []
        calls = [
            partial(self._run_task, part, given, task, its_own, replies)
            for given, task, its_own in zip(part.tasks, self._tasks, participants, strict=True)
        ]
        run_side_by_side(calls, COMMIT_THREADS_MAX)
        return tuple(replies)

    def _scope(self, task: int) -> str:
        """Name what a task commits by itself; with another parallelism it has other keys, so another name."""
        planned = self._env.plan.components[self._env.component_of(task)]
        return f"{planned.id}:{planned.tasks.index(task)}/{len(planned.tasks)}"

    def _run_task(
        self,
        part: CommitPart,
        given: RemoteTask,
        task: CommitTask,
        participants: CommitParticipants,
        replies: list[TaskReply],
    ) -> None:
        env, component = self._env, self._env.component_of(given.task)
        inbox: list[Delivery] = []
        sent: list[PackedDelivery] = []
        failures: list[Failure] = []
        at = (env.calls, part.attempt)

        def read() -> None:  # the user's serializers read here, and write below
            inbox.extend(unpack_deliveries(given.inbox, part.attempt, env))

        def write() -> None:
            sent.extend(pack_deliveries(task.sent, env))

        try:
            if run_guarded(read, component, given.task, "reading the tuples", failures.append, *at):
                task.run(inbox)
                if task.failure is not None:
                    failures.append(task.failure)
                elif run_guarded(write, component, given.task, "emit", failures.append, *at):
                    failure = participants.commit(lambda: not self._abandoned)
                    failures += [] if failure is None else [failure]
        finally:  # nothing is left where all have committed
            participants.abort()
        replies.append(TaskReply(given.task, sent, failures[0] if failures else None, task.metrics))

    def abandon(self) -> None:
        """Begin no further call of user code."""
        self._abandoned = True
        for task in self._tasks:
            task.abandon()
