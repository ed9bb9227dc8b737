"""Bolt tasks: one task of one bolt at work on one attempt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stormline.runtime.messages.wave import Failure
from stormline.runtime.tasks.collector import TaskCollector
from stormline.runtime.tasks.each_tuple import execute_each
from stormline.runtime.tasks.gathered import pack_gathered
from stormline.runtime.tasks.other_state import OtherState
from stormline.runtime.tasks.sink_turn import TaskSinkTurn
from stormline.runtime.tasks.task_context import TaskContext
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.runtime.tasks.task_hooks import add_auto_hooks, hooked_batch_bolt, tell_of_emits
from stormline.runtime.tasks.user_code import UserCode, run_guarded
from stormline.runtime.tuples.columns import Tuples, delivered, rows_of
from stormline.runtime.world.world import World
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.context import TopologyContext
from stormline.topology.contracts import (
    AnyBatchBolt,
    Collector,
    Conf,
    IArrowBatchBolt,
    IBasicBolt,
    IBatchBolt,
    IRowsBolt,
)
from stormline.topology.gathering import gathered_by
from stormline.topology.readings import Readings, merge_into
from stormline.topology.serialization import Registry
from stormline.topology.transaction_label import TransactionLabel, label_scope
from stormline.topology.tuples import Tuple, TupleSource
from stormline.topology.two_phase_bolt import TwoPhaseCommitter

OnFailure = Callable[[Failure], None]

Share = tuple[Tuples, TupleSource]
"""Tuples that a task is to execute, which become its own, and who emitted them."""


def execute_tuples(bolt: AnyBatchBolt, tuples: Tuples, source: TupleSource) -> None:
    """Let a BatchBolt execute tuples, one by one, many at once or as a record batch, however they were emitted."""
    if isinstance(bolt, IArrowBatchBolt):
        bolt.execute_batch(delivered(tuples, source))
        return
    if isinstance(bolt, IRowsBolt):
        for rows in rows_of(tuples):
            bolt.execute_rows(rows, source)
        return
    for rows in rows_of(tuples):
        execute_each(bolt.execute, rows, source)


class _BoltTask:
    """A task at work on one attempt: user code is called `of` it; what fails goes to `on_failure`."""

    def __init__(self, of: UserCode, collector: TaskCollector, context: TaskContext, on_failure: OnFailure) -> None:
        self.of = of
        self.collector = collector
        self.context = context
        self._on_failure = on_failure

    def _came_through(self, failure: Failure | None) -> bool:
        """Return whether a call came through, which has given this."""
        if failure is not None:
            self._on_failure(failure)
        return failure is None


class BasicBoltTask(_BoltTask):
    """Shares the BasicBolt that was prepared once in this process."""

    def __init__(
        self, bolt: IBasicBolt, of: UserCode, collector: TaskCollector, context: TaskContext, on_failure: OnFailure
    ) -> None:
        super().__init__(of, collector, context, on_failure)
        self._counted: Readings = {}
        self._bolt = bolt

    def execute_all(self, shares: Sequence[Share]) -> bool:
        """Execute tuples; return whether that came through."""
        return self._came_through(run_guarded(self.of, "execute", self._execute_all, shares))

    def _execute_all(self, shares: Sequence[Share]) -> None:
        try:
            for tuples, source in shares:
                for rows in rows_of(tuples):
                    execute_each(self._bolt.execute, rows, source, self.collector)
            self.collector.flush()
        finally:  # the bolt counts for all attempts, one after another
            self.context.count_into(self._counted)

    def finish(self) -> bool:
        """Refuse what is emitted from now on: a BasicBolt never learns of batches."""
        return self._came_through(run_guarded(self.of, "execute", self.collector.finish, "execute"))

    def count_into(self, readings: Readings) -> None:
        """Add what the bolt's metrics have counted for this attempt."""
        merge_into(readings, self._counted)

    def clean_up(self) -> None:
        """Do nothing: hooks live as long as the bolt."""


class BatchBoltTask(_BoltTask):
    """A fresh bolt for one attempt, prepared with `context`, whose hooks are heeded from now on.

    `gathers`: it is deferred, and finishes in the commit phase, not here.
    """

    def __init__(
        self,
        bolt: AnyBatchBolt,
        of: UserCode,
        collector: TaskCollector,
        context: TaskContext,
        on_failure: OnFailure,
        gathers: Sequence[str] | None,
        world: World,
        turn: TaskSinkTurn | None = None,
    ) -> None:
        super().__init__(of, collector, context, on_failure)
        self.bolt = bolt
        self.turn = turn
        self._gathers = gathers
        self._executes = hooked_batch_bolt(bolt, context, collector, world)
        self._who = "" if gathers is None else f"bolt {of.component!r} ({type(bolt).__name__}), task {of.task},"
        self._other = None if gathers is None else OtherState(bolt, gathers, alone=True, who=self._who)

    def execute_all(self, shares: Sequence[Share]) -> bool:
        """Execute tuples; return whether that came through."""
        return self._came_through(run_guarded(self.of, "execute", self._execute_all, shares))

    def _execute_all(self, shares: Sequence[Share]) -> None:
        if self._other is not None:
            self._other.before_execute()
        for tuples, source in shares:
            execute_tuples(self._executes, tuples, source)
        if self._other is not None:
            self._other.after_execute()
        self.collector.flush()

    def finish(self) -> bool:
        """Finish the batch; return whether that came through."""
        assert self._gathers is None, "it finishes in the commit phase"
        return self._came_through(run_guarded(self.of, "finish_batch", self._finish_batch))

    def _finish_batch(self) -> None:
        self.bolt.finish_batch()
        self.collector.finish("finish_batch")

    def count_into(self, readings: Readings) -> None:
        """Add what the bolt's metrics have counted."""
        self.context.count_into(readings)

    def clean_up(self) -> None:
        """Clean up the hooks that the bolt has added; drop what it has begun in a sink, and not pre-committed."""
        self.context.clean_up()
        if self.turn is not None:
            self.turn.roll_back()

    def gathered(self, registry: Registry) -> bytes:
        """Return what the commit phase needs of a deferred bolt; raise `NotGathered` where it cannot travel."""
        assert self._gathers is not None
        assert self._other is not None
        self._other.check()
        return pack_gathered(self.bolt, self._gathers, self._who, registry)


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
    decided: bool,
    execution: int,
) -> BatchBoltTask | BasicBoltTask | None:
    """Return the task, prepared; None when preparing it has failed the attempt.

    Args:
        decided: nothing is written into the component's sink: what was, is to be committed (rule R3).
        execution: random number of this execution of the slot, by which its transactions are named (rule R1).
    """
    of = UserCode(component, task, attempt, env.calls)
    made = run_guarded(of, "prepare", _prepared, env, of, collector, on_failure, decided, execution)
    if isinstance(made, Failure):
        on_failure(made)
        return None
    return made


def _prepared(
    env: TaskEnvironment,
    of: UserCode,
    collector: TaskCollector,
    on_failure: OnFailure,
    decided: bool,
    execution: int,
) -> BatchBoltTask | BasicBoltTask:
    component, task, attempt, _ = of
    assert task is not None
    planned = env.plan.components[component]
    if isinstance(planned.component.obj, IBasicBolt):
        basic, context = env.basic_bolt(component, task), env.context(component, task)
        tell_of_emits(context, collector)
        return BasicBoltTask(basic, of, collector, context, on_failure)
    bolt, context = env.fresh_bolt(component), env.context(component, task).for_attempt()
    add_auto_hooks(context)
    turn = None
    if isinstance(bolt, TwoPhaseCommitter):
        scope = label_scope(env.plan.topology_id, component)
        label = TransactionLabel(scope, attempt.transaction_id, env.epoch, attempt.attempt_id, task, execution)
        turn = TaskSinkTurn(component, env.sink(component, task), bolt.semantic, label, env.registry, decided)
        bolt.turn = turn
    bolt.prepare(env.conf(component), context, collector, attempt)
    collector.flush()
    gathers = gathered_by(planned.component.obj) if planned.deferred else None
    return BatchBoltTask(bolt, of, collector, context, on_failure, gathers, env.world, turn)
