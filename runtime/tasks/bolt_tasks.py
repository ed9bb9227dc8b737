"""Bolt tasks: one task of one bolt at work on one attempt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from stormline.runtime.messages.wave import Failure
from stormline.runtime.tasks.collector import TaskCollector
from stormline.runtime.tasks.gathered import OtherState, pack_gathered
from stormline.runtime.tasks.task_context import TaskContext
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.runtime.tasks.task_hooks import add_auto_hooks, hooked_batch_bolt, tell_of_emits
from stormline.runtime.tasks.user_code import run_guarded
from stormline.runtime.tuples.columns import Tuples, delivered, rows_of
from stormline.runtime.world.running_calls import Calls
from stormline.runtime.world.world import World
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.context import TopologyContext
from stormline.topology.contracts import Collector, Conf, IArrowBatchBolt, IBasicBolt, IBatchBolt
from stormline.topology.gathering import gathered_by
from stormline.topology.readings import Readings, merge_into
from stormline.topology.serialization import Registry
from stormline.topology.tuples import Tuple, TupleSource

OnFailure = Callable[[Failure], None]
At = tuple[Calls, TransactionAttempt]


def execute_tuples(bolt: IBatchBolt, tuples: Tuples, source: TupleSource) -> None:
    """Let a BatchBolt execute tuples, one by one or as a record batch, however they were emitted."""
    if isinstance(bolt, IArrowBatchBolt):
        bolt.execute_batch(delivered(tuples, source))
        return
    execute = bolt.execute
    for rows in rows_of(tuples):
        for row in rows:
            execute(Tuple(row, source))


class BasicBoltTask:
    """Shares the BasicBolt that was prepared once in this process."""

    def __init__(
        self,
        bolt: IBasicBolt,
        component: str,
        task: int,
        collector: TaskCollector,
        on_failure: OnFailure,
        at: At,
        context: TaskContext,
    ) -> None:
        self._at = at
        self.collector = collector
        self.context = context
        self._counted: Readings = {}
        self._bolt = bolt
        self._component = component
        self._task = task
        self._on_failure = on_failure

    def execute_all(self, tuples: Tuples, source: TupleSource) -> bool:
        """Execute tuples, which become the bolt's own."""

        def call() -> None:
            execute, collector = self._bolt.execute, self.collector
            try:
                for rows in rows_of(tuples):
                    for row in rows:
                        execute(Tuple(row, source), collector)
                collector.flush()
            finally:  # the bolt counts for all attempts, one after another
                self.context.count_into(self._counted)

        return run_guarded(call, self._component, self._task, "execute", self._on_failure, *self._at)

    def finish(self) -> bool:
        """Refuse what is emitted from now on: a BasicBolt never learns of batches."""
        return run_guarded(
            partial(self.collector.finish, "execute"),
            self._component,
            self._task,
            "execute",
            self._on_failure,
            *self._at,
        )

    def count_into(self, readings: Readings) -> None:
        """Add what the bolt's metrics have counted for this attempt."""
        merge_into(readings, self._counted)

    def clean_up(self) -> None:
        """Do nothing: hooks live as long as the bolt."""


class BatchBoltTask:
    """A fresh bolt for one attempt, prepared with `context`, whose hooks are heeded from now on.

    `gathers`: it is deferred, and finishes in the commit phase, not here.
    """

    def __init__(
        self,
        bolt: IBatchBolt,
        component: str,
        task: int,
        collector: TaskCollector,
        on_failure: OnFailure,
        at: At,
        gathers: Sequence[str] | None,
        context: TaskContext,
        world: World,
    ) -> None:
        self.collector = collector
        self.bolt = bolt
        self._component = component
        self._task = task
        self._on_failure = on_failure
        self._at = at
        self._gathers = gathers
        self.context = context
        self._executes = hooked_batch_bolt(bolt, context, collector, world)
        self._other = None if gathers is None else OtherState(bolt, gathers, alone=True)

    def execute_all(self, tuples: Tuples, source: TupleSource) -> bool:
        """Execute tuples, which become the bolt's own."""

        def call() -> None:
            if self._other is None:
                execute_tuples(self._executes, tuples, source)
            else:
                self._other.before_execute()
                execute_tuples(self._executes, tuples, source)
                self._other.after_execute(self._who())
            self.collector.flush()

        return run_guarded(call, self._component, self._task, "execute", self._on_failure, *self._at)

    def finish(self) -> bool:
        """Finish the batch, unless deferred."""
        last = "finish_batch" if self._gathers is None else "execute"

        def call() -> None:
            if self._gathers is None:
                self.bolt.finish_batch()
            self.collector.finish(last)

        return run_guarded(call, self._component, self._task, last, self._on_failure, *self._at)

    def count_into(self, readings: Readings) -> None:
        """Add what the bolt's metrics have counted."""
        self.context.count_into(readings)

    def clean_up(self) -> None:
        """Clean up the hooks that the bolt has added."""
        self.context.clean_up()

    def gathered(self, registry: Registry) -> bytes:
        """Return what the commit phase needs of a deferred bolt; raise `NotGathered` where it cannot travel."""
        assert self._gathers is not None
        assert self._other is not None
        self._other.check(self._who())
        return pack_gathered(self.bolt, self._gathers, self._who(), registry)

    def _who(self) -> str:
        return f"bolt {self._component!r} ({type(self.bolt).__name__}), task {self._task},"


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
    at = (env.calls, attempt)
    made: list[BatchBoltTask | BasicBoltTask] = []

    def prepare() -> None:
        if isinstance(planned.component.obj, IBasicBolt):
            basic, context = env.basic_bolt(component, task), env.context(component, task)
            tell_of_emits(context, collector)
            made.append(BasicBoltTask(basic, component, task, collector, on_failure, at, context))
            return
        bolt, context = env.fresh_bolt(component), env.context(component, task).for_attempt()
        add_auto_hooks(context)
        bolt.prepare(env.conf(component), context, collector, attempt)
        collector.flush()
        gathers = gathered_by(planned.component.obj) if planned.deferred else None
        made.append(BatchBoltTask(bolt, component, task, collector, on_failure, at, gathers, context, env.world))

    return made[0] if run_guarded(prepare, component, task, "prepare", on_failure, *at) else None
