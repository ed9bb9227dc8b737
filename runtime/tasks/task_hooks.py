"""Task hooks at work: wrapped around what a task calls, where there are any, and nowhere else."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from stormline.runtime.errors import InvalidHook
from stormline.runtime.tasks.collector import TaskCollector
from stormline.runtime.tasks.task_context import TaskContext
from stormline.runtime.tuples.columns import Columns, Row, Tuples
from stormline.runtime.world.world import World
from stormline.topology.config import AUTO_TASK_HOOKS
from stormline.topology.context import TopologyContext
from stormline.topology.contracts import AnyBatchBolt, Collector, Conf, IArrowBatchBolt, IBasicBolt, IBatchBolt
from stormline.topology.hooks import BoltExecuteInfo, EmitInfo, ITaskHook
from stormline.topology.tuples import Tuple

Hooks = Sequence[ITaskHook]


class _Told:
    """A route that tells hooks what is emitted to a stream."""

    def __init__(self, hooks: Hooks, task: int, stream: str) -> None:
        self._hooks = hooks
        self._task = task
        self._stream = stream

    def take(self, tuples: Tuples) -> None:
        if not isinstance(tuples, Columns):
            for row in tuples:
                self._tell(row, None)

    def take_direct(self, task: int, row: Row) -> None:
        self._tell(row, task)

    def flush(self) -> None: ...

    def _tell(self, row: Row, direct_task: int | None) -> None:
        info = EmitInfo(row, self._stream, self._task, direct_task)
        for hook in self._hooks:
            hook.emit(info)


def _executed(hooks: Hooks, tup: Tuple, task: int, secs: float) -> None:
    info = BoltExecuteInfo(tup, task, secs * 1000)
    for hook in hooks:
        hook.bolt_execute(info)


class _HookedBatchBolt(IBatchBolt):
    """A prepared BatchBolt whose hooks hear of each tuple."""

    def __init__(self, bolt: IBatchBolt, hooks: Hooks, task: int, world: World) -> None:
        self._monotonic = world.monotonic
        self._bolt = bolt
        self._hooks = hooks
        self._task = task

    def prepare(self, conf: Conf, context: TopologyContext, collector: Collector, batch_id: Any) -> None:
        raise AssertionError("the bolt is prepared")

    def execute(self, tup: Tuple) -> None:
        begun = self._monotonic()
        self._bolt.execute(tup)
        _executed(self._hooks, tup, self._task, self._monotonic() - begun)

    def finish_batch(self) -> None:
        self._bolt.finish_batch()


class _HookedBasicBolt(IBasicBolt):
    """A prepared BasicBolt whose hooks hear of each tuple."""

    def __init__(self, bolt: IBasicBolt, hooks: Hooks, task: int, world: World) -> None:
        self._monotonic = world.monotonic
        self._bolt = bolt
        self._hooks = hooks
        self._task = task

    def execute(self, tup: Tuple, collector: Collector) -> None:
        begun = self._monotonic()
        self._bolt.execute(tup, collector)
        _executed(self._hooks, tup, self._task, self._monotonic() - begun)

    def cleanup(self) -> None:
        self._bolt.cleanup()


def hooked_batch_bolt(bolt: AnyBatchBolt, context: TaskContext, collector: TaskCollector, world: World) -> AnyBatchBolt:
    """Return what executes and finishes in place of a prepared bolt: itself, where there is no hook."""
    context.prepared()
    if not context.hooks:
        return bolt
    tell_of_emits(context, collector)
    if isinstance(bolt, IArrowBatchBolt):
        return bolt
    return _HookedBatchBolt(bolt, context.hooks, context.this_task_id, world)


def hooked_basic_bolt(bolt: IBasicBolt, context: TaskContext, world: World) -> IBasicBolt:
    """Return what executes in place of a prepared bolt: itself, where there is no hook."""
    context.prepared()
    return _HookedBasicBolt(bolt, context.hooks, context.this_task_id, world) if context.hooks else bolt


def tell_of_emits(context: TaskContext, collector: TaskCollector) -> None:
    """Let the hooks of a context hear of what is emitted to a collector from now on."""
    if context.hooks:
        hooks, task = context.hooks, context.this_task_id
        collector.hear(lambda stream: _Told(hooks, task, stream))


def add_auto_hooks(context: TaskContext) -> None:
    """Add a hook of each class that the configuration names.

    Raises:
        InvalidHook: one cannot be found or made.
    """
    for named in context.conf.get(AUTO_TASK_HOOKS) or ():
        context.add_task_hook(_made(named))


def _made(named: Any) -> Any:
    try:
        if isinstance(named, str):
            module, _, name = named.rpartition(".")
            named = getattr(importlib.import_module(module), name)
        return named()
    except Exception as error:
        raise InvalidHook(
            f"{AUTO_TASK_HOOKS} names {named!r}, of which no hook can be made ({type(error).__name__}: {error}); "
            "expected classes of hooks that take no arguments, or their names, 'package.module.Class'"
        ) from error
