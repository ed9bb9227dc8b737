"""ExecutorTurn: one turn of a commit phase on the executors, as the driver sees it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from stormline.runtime.commit.executor_messages import packed, read_reply
from stormline.runtime.messages.commit_request import CommitRequest, RemoteTask, TaskReply
from stormline.runtime.messages.engine import CommitEngine, EngineFailure
from stormline.runtime.messages.wave import AttemptResult, DeferredTask, Failure
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.runtime.tasks.user_code import UserCode, run_guarded
from stormline.runtime.tuples.delivery import Delivery
from stormline.topology.errors import CorruptData
from stormline.topology.plan import PlannedComponent
from stormline.topology.readings import Readings, merge_into

log = logging.getLogger("stormline")


class ExecutorTurn:
    """The tasks of `components`, which have their turn together on the executors.

    After `run`: what they `sent`, and why they failed. Only replies of every task make a turn that did
    not fail (law 5, complete input).
    """

    def __init__(
        self,
        env: TaskEnvironment,
        components: Sequence[PlannedComponent],
        result: AttemptResult,
        engine: CommitEngine,
    ) -> None:
        self._env = env
        self._engine = engine
        self._attempt = result.attempt
        self._components = tuple(planned.id for planned in components)
        self._deferred = {
            task: result.deferred.get(task) or DeferredTask() for planned in components for task in planned.tasks
        }
        self._abandoned = False
        self.sent: list[Delivery] = []
        self.failures: list[Failure] = []
        self.metrics: Readings = {}

    def run(self, inbox: Mapping[int, Sequence[Delivery]]) -> None:
        """Run all tasks to their end."""
        tasks = tuple(self._remote(task, given, inbox.get(task, ())) for task, given in self._deferred.items())
        if self.failures or self._abandoned:
            return
        request = CommitRequest(self._attempt, self._components, tasks, self._env.commit_ids[self._attempt])
        try:
            sealed = self._engine.commit(request)
        except EngineFailure as error:
            self.failures.append(self._incomplete(f"{request.title} came to nothing: {error}", error.lasting))
            return
        replies = self._read(sealed)
        for task in self._deferred:
            if task in replies:
                self._take(replies[task])
        missing = self._deferred.keys() - replies.keys()
        if missing:
            self.failures.append(
                self._incomplete(f"{request.title}: {len(missing)} of {len(tasks)} bolt tasks have not replied")
            )

    def _remote(self, task: int, given: DeferredTask, inbox: Sequence[Delivery]) -> RemoteTask:
        """Return a task with all that it is given, packed."""
        if not inbox:
            return RemoteTask(task, given)
        edge, source_task = self._env.plan.edges[inbox[0].edge], inbox[0].source_task
        of = UserCode(edge.source, source_task, self._attempt, self._env.calls)
        deliveries = run_guarded(of, "emit", packed, inbox, self._env)  # the user's serializers write here
        if isinstance(deliveries, Failure):
            self.failures.append(deliveries)
            return RemoteTask(task, given)
        return RemoteTask(task, DeferredTask(given.gathered, [*given.tuples, *deliveries]))

    def _read(self, sealed: Sequence[bytes]) -> dict[int, TaskReply]:
        replies: dict[int, TaskReply] = {}
        for one in sealed:
            try:
                reply = read_reply(one)
            except CorruptData as error:
                self.failures.append(self._incomplete(str(error)))
                continue
            if reply.refusal is not None:
                self.failures.append(self._incomplete(reply.refusal))
            assert reply.attempt in (None, self._attempt), (reply.attempt, self._attempt)
            replies.update({task.task: task for task in reply.tasks})
        return replies

    def _take(self, reply: TaskReply) -> None:
        if reply.failure is not None:
            self.failures.append(reply.failure)
        merge_into(self.metrics, reply.metrics)
        self.sent += reply.sent

    def _incomplete(self, message: str, lasting: bool = False) -> Failure:
        return Failure("the commit phase", None, message, fatal=lasting, counts=False)

    def abandon(self) -> None:
        """Begin nothing more, and let what runs on the executors be ended; what comes of it is ignored."""
        self._abandoned = True
        try:
            self._engine.cancel_commit(self._attempt)
        except Exception:
            log.warning("cancelling the commit of %s on the executors", self._attempt, exc_info=True)
