"""Bolt tasks: one task of one bolt at work on one attempt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stormline.runtime.collector import TaskCollector
from stormline.runtime.deferred_state import pack_state
from stormline.runtime.guard import run_guarded
from stormline.runtime.routing import Row
from stormline.runtime.task_environment import TaskEnvironment
from stormline.runtime.wave import DeferredTask, Failure
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.context import TopologyContext
from stormline.topology.contracts import Collector, Conf, IBasicBolt, IBatchBolt
from stormline.topology.tuples import Tuple, TupleSource

OnFailure = Callable[[Failure], None]
Emitted = Sequence[tuple[str, int | None, bytes]]


class BasicBoltTask:
    """Shares the BasicBolt that was prepared once in this process."""

    def __init__(
        self, bolt: IBasicBolt, component: str, task: int, collector: TaskCollector, on_failure: OnFailure
    ) -> None:
        self.collector = collector
        self._bolt = bolt
        self._component = component
        self._task = task
        self._on_failure = on_failure

    def execute_all(self, rows: list[Row], source: TupleSource) -> bool:
        """Execute rows, which become the tuples' own."""

        def call() -> None:
            execute, collector = self._bolt.execute, self.collector
            for row in rows:
                execute(Tuple(row, source), collector)
            collector.flush()

        return run_guarded(call, self._component, self._task, "execute", self._on_failure)

    def finish(self) -> bool:
        """Do nothing: a BasicBolt never learns of batches."""
        return True

    def pack(self, emitted: Emitted) -> DeferredTask:
        """Return what the commit phase needs, where the bolt stands downstream of a committer."""
        return DeferredTask(emitted=emitted)


class BatchBoltTask:
    """A fresh bolt for one attempt. `deferred`: it finishes in the commit phase, not here."""

    def __init__(
        self,
        bolt: IBatchBolt,
        component: str,
        task: int,
        collector: TaskCollector,
        on_failure: OnFailure,
        deferred: bool,
    ) -> None:
        self.collector = collector
        self.bolt = bolt
        self._component = component
        self._task = task
        self._on_failure = on_failure
        self._deferred = deferred

    def execute_all(self, rows: list[Row], source: TupleSource) -> bool:
        """Execute rows, which become the tuples' own."""

        def call() -> None:
            execute = self.bolt.execute
            for row in rows:
                execute(Tuple(row, source))
            self.collector.flush()

        return run_guarded(call, self._component, self._task, "execute", self._on_failure)

    def finish(self) -> bool:
        """Finish the batch, unless deferred."""
        if self._deferred:
            return True

        def call() -> None:
            self.bolt.finish_batch()
            self.collector.flush()

        return run_guarded(call, self._component, self._task, "finish_batch", self._on_failure)

    def pack(self, emitted: Emitted) -> DeferredTask:
        """Return what the commit phase needs; raise `CannotTravel` where the state cannot be packed."""
        return DeferredTask(state=pack_state(self.bolt), emitted=emitted)


class BasicBoltAtCommit(IBatchBolt):
    """Gives a BasicBolt downstream of a committer its turn among the BatchBolts of a commit phase."""

    def __init__(self, env: TaskEnvironment, component: str, task: int) -> None:
        self._env = env
        self._component = component
        self._task = task

    def prepare(self, conf: Conf, context: TopologyContext, collector: Collector, batch_id: Any) -> None:
        """Prepare the BasicBolt, the first time in this process."""
        self._bolt = self._env.basic_bolt(self._component, self._task)
        self._collector = collector

    def execute(self, tup: Tuple) -> None:
        """Execute one tuple."""
        self._bolt.execute(tup, self._collector)

    def finish_batch(self) -> None:
        """Do nothing: a BasicBolt never learns of batches."""


class HeldTuples:
    """Stands for a deferred task whose state cannot travel: keeps its tuples for the commit phase."""

    def __init__(self) -> None:
        self.tuples: list[tuple[int, int, bytes]] = []

    def hold(self, edge: int, source_task: int, rows: bytes) -> None:
        """Keep packed rows."""
        self.tuples.append((edge, source_task, rows))


def begin_batch(
    env: TaskEnvironment,
    component: str,
    task: int,
    attempt: TransactionAttempt,
    collector: TaskCollector,
    on_failure: OnFailure,
) -> BatchBoltTask | BasicBoltTask | None:
    """Return the task, prepared; None when preparing it has failed the attempt."""
    planned = env.plan.components[component]
    made: list[BatchBoltTask | BasicBoltTask] = []

    def prepare() -> None:
        if isinstance(planned.component.obj, IBasicBolt):
            made.append(BasicBoltTask(env.basic_bolt(component, task), component, task, collector, on_failure))
            return
        bolt = env.fresh_bolt(component)
        bolt.prepare(env.conf(component), env.context(component, task), collector, attempt)
        collector.flush()
        made.append(BatchBoltTask(bolt, component, task, collector, on_failure, planned.deferred))

    return made[0] if run_guarded(prepare, component, task, "prepare", on_failure) else None
