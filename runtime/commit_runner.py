"""CommitRun: the commit phase of one attempt, in the driver process.

Deferred bolts finish stage by stage, the tasks of a stage side by side in threads. What they emit goes to the
deferred bolts of later stages, in the same commit phase.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from stormline.runtime.bolt_tasks import BasicBoltAtCommit, tuple_maker
from stormline.runtime.collector import Output, Route, TaskCollector, logged
from stormline.runtime.deferred_state import CannotTravel, unpack_state
from stormline.runtime.guard import run_guarded
from stormline.runtime.side_by_side import run_side_by_side
from stormline.runtime.task_environment import TaskEnvironment
from stormline.runtime.wave import AttemptResult, DeferredTask, Failure
from stormline.topology.contracts import IBasicBolt, ICommitterTransactionalSpout
from stormline.topology.plan import Edge, PlannedComponent

COMMIT_THREADS_MAX = 64

Delivery = tuple[Edge, int, int, Sequence[Any]]  # edge, source task, target task, values


class _CommitTask:
    """One task of a deferred bolt in one commit."""

    def __init__(self, env: TaskEnvironment, planned: PlannedComponent, task: int, result: AttemptResult) -> None:
        self._env = env
        self._planned = planned
        self._attempt = result.attempt
        self.task = task
        self.sent: list[Delivery] = []
        self.failure: Failure | None = None
        self._abandoned = False
        self._deferred = result.deferred.get(task) or DeferredTask()
        self.collector = TaskCollector(planned, task, result.attempt, self._outputs())
        basic = isinstance(planned.component.obj, IBasicBolt)
        self._bolt = BasicBoltAtCommit(env, planned.id, task) if basic else env.fresh_bolt(planned.id)

    def _outputs(self) -> dict[str, Output]:
        outputs: dict[str, Output] = {}
        for stream, declaration in self._planned.component.streams.items():
            edges = self._env.plan.out_edges(self._planned.id, stream)
            routes: list[Route] = [self._route(edge) for edge in edges]
            if self._env.debug(self._planned.id):
                routes.insert(0, logged(self._planned.id, self.task, stream))
            outputs[stream] = Output(declaration, routes, self._env.listeners(edges))
        return outputs

    def _route(self, edge: Edge) -> Route:
        choose = self._env.chooser(edge, self.task, self.task + self._attempt.transaction_id)
        tasks = self._env.plan.components[edge.target].tasks

        def route(direct: int | None, values: Sequence[Any]) -> None:
            targets = choose(values) if direct is None else [direct] if direct in tasks else []
            self.sent += [(edge, self.task, target, values) for target in targets]

        return route

    def restore(self) -> None:
        """Take over the state that the processing phase left; raise `CannotTravel` where it does not fit."""
        if self._deferred.state is not None:
            conf, context = self._env.conf(self._planned.id), self._env.context(self._planned.id, self.task)
            bindings = {"conf": conf, "context": context, "collector": self.collector}
            unpack_state(self._bolt, self._deferred.state, bindings)

    def run(self, inbox: Sequence[Delivery]) -> None:
        """Execute what is left to execute, and finish."""
        if self._deferred.state is None:
            self._guarded(self._prepare, "prepare")
        self._guarded(lambda: self._execute(inbox), "execute")
        self._guarded(self._bolt.finish_batch, "finish_batch")
        self.collector.close()

    def _guarded(self, call: Callable[[], None], where: str) -> None:
        if self.failure is None and not self._abandoned:
            run_guarded(call, self._planned.id, self.task, where, self._fail)

    def _fail(self, failure: Failure) -> None:
        self.failure = failure

    def abandon(self) -> None:
        """Begin no further call of user code, and refuse what the present one emits."""
        self._abandoned = True
        self.collector.close()

    def _prepare(self) -> None:
        conf, context = self._env.conf(self._planned.id), self._env.context(self._planned.id, self.task)
        self._bolt.prepare(conf, context, self.collector, self._attempt)

    def _execute(self, inbox: Sequence[Delivery]) -> None:
        for stream, direct, packed in self._deferred.emitted:
            row = [self._attempt, *self._env.registry.unpack(packed)[0][1:]]
            if direct is None:
                self.collector.emit(row, stream)
            else:
                self.collector.emit_direct(direct, row, stream)
        execute = self._bolt.execute
        for index, source_task, packed in self._deferred.tuples:
            make = tuple_maker(self._env, self._env.plan.edges[index], source_task, self._attempt)
            for row in self._env.registry.unpack(packed):
                execute(make(row))
        for edge, source_task, _, values in inbox:
            execute(tuple_maker(self._env, edge, source_task, self._attempt)(list(values)))


class CommitRun:
    """The commit phase of one attempt. `cannot_travel` names a bolt whose state did not fit, and why."""

    def __init__(self, env: TaskEnvironment, result: AttemptResult) -> None:
        self._env = env
        self._result = result
        self.attempt = result.attempt
        self.cannot_travel: tuple[str, str] | None = None
        self._abandoned = False
        self._stages = [
            [
                _CommitTask(env, env.plan.components[name], task, result)
                for name in stage
                for task in env.plan.components[name].tasks
            ]
            for stage in env.plan.commit_stages
        ]

    def run(self) -> Failure | None:
        """Run it to its end; return why it failed, or None. No effect precedes the restoring of all state."""
        for task in (task for stage in self._stages for task in stage):
            try:
                task.restore()
            except CannotTravel as error:
                component = self._env.component_of(task.task)
                self.cannot_travel = (component, str(error))
                return Failure(component, task.task, f"its state cannot travel: {error}", counts=False)
        failure = self._commit_emitters()
        inbox: dict[int, list[Delivery]] = {}
        for stage in self._stages:
            if failure is not None or self._abandoned:
                break
            self._run_stage(stage, inbox)
            failures = [task.failure for task in stage if task.failure is not None]
            failure = next((f for f in failures if f.fatal), failures[0] if failures else None)
            for task in stage:
                for delivery in task.sent:
                    inbox.setdefault(delivery[2], []).append(delivery)
        if self._abandoned:
            return Failure("the commit phase", None, "it was abandoned", counts=False)
        return failure

    def _run_stage(self, stage: list[_CommitTask], inbox: dict[int, list[Delivery]]) -> None:
        run_side_by_side([partial(task.run, inbox.get(task.task, ())) for task in stage], COMMIT_THREADS_MAX)

    def _commit_emitters(self) -> Failure | None:
        spout = self._env.plan.spout
        if not isinstance(spout.component.obj, ICommitterTransactionalSpout):
            return None
        failures: list[Failure] = []
        for task in spout.tasks:
            if self._abandoned:
                return None
            run_guarded(partial(self._commit_emitter, task), spout.id, task, "commit", failures.append)
            if failures:
                return failures[0]
        return None

    def _commit_emitter(self, task: int) -> None:
        emitter = self._env.emitter(task)
        packed = self._result.emitters.get(task)
        if packed is not None:
            spout = self._env.plan.spout
            collector = TaskCollector(spout, task, self.attempt, {})
            bindings = {"conf": self._env.conf(spout.id), "context": self._env.context(spout.id, task)}
            unpack_state(emitter, packed, {**bindings, "collector": collector})
        emitter.commit(self.attempt)

    def abandon(self) -> None:
        """Begin no further call of user code: another attempt, or another driver, has taken this one's place."""
        self._abandoned = True
        for task in (task for stage in self._stages for task in stage):
            task.abandon()
