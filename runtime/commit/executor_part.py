"""ExecutorPart: what one Spark task of a commit does: prepares its bolts, executes what is left, and finishes them."""

from __future__ import annotations

from functools import partial

from stormline.runtime.commit.commit_phase import CommitTask
from stormline.runtime.commit.executor_messages import (
    packed,
    read_part,
    seal_reply,
    second_execution,
)
from stormline.runtime.messages.commit_request import CommitPart, PartReply, TaskReply
from stormline.runtime.messages.wave import AttemptResult, Failure
from stormline.runtime.tasks.commit_threads import COMMIT_THREADS_MAX
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.runtime.tasks.user_code import UserCode, run_guarded
from stormline.runtime.tuples.delivery import Delivery
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
        result = AttemptResult(part.attempt, deferred={task.task: task.given for task in part.tasks})
        self._tasks = [self._commit_task(remote.task, result) for remote in part.tasks]
        if self._abandoned:
            return ()
        replies: list[TaskReply] = []
        calls = [partial(self._run_task, part, task, replies) for task in self._tasks]
        run_side_by_side(env.world, calls, COMMIT_THREADS_MAX)
        return tuple(replies)

    def _commit_task(self, task: int, result: AttemptResult) -> CommitTask:
        planned = self._env.plan.components[self._env.component_of(task)]
        participants = self._env.participants(result.attempt, planned.task_scope(task))
        return CommitTask(self._env, planned, task, result, participants)

    def _run_task(self, part: CommitPart, task: CommitTask, replies: list[TaskReply]) -> None:
        try:
            task.run(())
            sent: list[Delivery] | Failure | None = task.failure
            if sent is None:  # the user's serializers write here
                of = UserCode(task.component, task.task, part.attempt, self._env.calls)
                sent = run_guarded(of, "emit", packed, task.sent, self._env)
            if not isinstance(sent, Failure):
                sent = task.participants.commit(lambda: not self._abandoned) or sent
        finally:  # nothing is left where all have committed
            task.participants.abort()
        if isinstance(sent, Failure):
            replies.append(TaskReply(task.task, failure=sent, metrics=task.metrics))
        else:
            replies.append(TaskReply(task.task, sent, metrics=task.metrics))

    def abandon(self) -> None:
        """Begin no further call of user code."""
        self._abandoned = True
        for task in self._tasks:
            task.abandon()
