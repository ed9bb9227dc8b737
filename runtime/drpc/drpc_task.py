"""DRPCTask: one task of a bolt in the line of a DRPC function, at work on many requests at once."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from stormline.runtime.tasks.bolt_tasks import execute_tuples
from stormline.runtime.tasks.collector import Route, TaskCollector
from stormline.runtime.tasks.task_context import TaskContext
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.runtime.tasks.task_hooks import add_auto_hooks, hooked_batch_bolt, tell_of_emits
from stormline.runtime.tasks.task_routes import HandOver, collector_of
from stormline.runtime.tasks.user_code import failure_of
from stormline.runtime.tuples.columns import Row, Tuples, rows_of
from stormline.runtime.tuples.partitioning import Split
from stormline.topology.contracts import AnyBatchBolt, AnyBolt, IBasicBolt
from stormline.topology.plan import Edge, PlannedComponent
from stormline.topology.readings import Readings, merge_into
from stormline.topology.tuples import Tuple, TupleSource

log = logging.getLogger("stormline")


class DRPCRequest:
    """One request: the id that its tuples carry, and what has come of it. `over`: it has its end, well or not.

    Args:
        batch_id: any object; `prepare` of a BatchBolt gets it, and the first value of each tuple equals it.
        first_tasks: how many tasks of the first bolt got the arguments.
        last_tasks: how many tasks of the last bolt will say that they have ended.
    """

    def __init__(self, batch_id: Any, first_tasks: int, last_tasks: int) -> None:
        self.batch_id = batch_id
        self.first_tasks = first_tasks
        self.results: list[Any] = []
        self.metrics: Readings = {}
        self.failure: tuple[str, BaseException | None] | None = None
        self.over = threading.Event()
        self._left = last_tasks
        self._lock = threading.Lock()

    def ended_in_one_task(self) -> None:
        """Record that a task of the last bolt has done all its part."""
        with self._lock:
            self._left -= 1
            if self._left == 0:
                self.over.set()

    def count(self, readings: Readings) -> None:
        """Record what metrics have counted."""
        if readings:
            with self._lock:
                merge_into(self.metrics, readings)

    def fail(self, message: str, cause: BaseException | None = None) -> None:
        """End it with an error, unless it has ended."""
        with self._lock:
            if not self.over.is_set():
                self.failure = (message, cause)
                self.over.set()


@dataclass(frozen=True, slots=True)
class Arrived:
    """Tuples of a request for one task."""

    request: DRPCRequest
    source: TupleSource
    tuples: Tuples


@dataclass(frozen=True, slots=True)
class Complete:
    """A task of the bolt before has sent all tuples of a request. A queue keeps its order, so they are here."""

    request: DRPCRequest


Message = Arrived | Complete


class _ToResult:
    """The route of the last bolt's tuples."""

    def __init__(self, request: DRPCRequest) -> None:
        self._request = request

    def take(self, tuples: Tuples) -> None:
        self._request.results += [row[1] for rows in rows_of(tuples) for row in rows]

    def take_direct(self, task: int, row: Row) -> None:
        self._request.results.append(row[1])

    def flush(self) -> None: ...


@dataclass(slots=True)
class _Share:
    """What a task has of one request. `waits_for`: tasks of the bolt before that have not sent all."""

    waits_for: int
    collector: TaskCollector
    context: TaskContext
    bolt: AnyBolt | None = None


@dataclass(slots=True)
class DRPCTask:
    """Executes tuples as they come, each for a bolt of its own request; finishes a request when all of it has come.

    All user code of the task runs in one thread, from the first call to `cleanup`.

    Args:
        deliver: puts a message into the inbox of a task.
        senders: tells how many tasks of the bolt before send to this one for a request.
        finishes: tells whether this task, of all tasks of its bolt, is one that finishes a request.
    """

    env: TaskEnvironment
    planned: PlannedComponent
    task: int
    deliver: Callable[[int, Message], None]
    senders: Callable[[DRPCRequest], int]
    finishes: Callable[[DRPCRequest], bool]
    inbox: queue.SimpleQueue[Message | None] = field(default_factory=queue.SimpleQueue)
    _shares: dict[DRPCRequest, _Share] = field(default_factory=dict)
    _splits: dict[int, Split] = field(default_factory=dict)
    _basic: IBasicBolt | None = None

    def work(self) -> None:
        """Take messages until None comes; then clean up."""
        while (message := self.inbox.get()) is not None:
            self.take(message)
        if self._basic is not None:
            try:
                self._basic.cleanup()
            except BaseException:  # whatever it is, the others are cleaned up too
                log.exception("cleanup of bolt %r, task %d", self.planned.id, self.task)
        self.env.context(self.planned.id, self.task).clean_up()

    def take(self, message: Message) -> None:
        """Do what a message asks for. A request that is over costs no more user code, and is let go of all the same."""
        request = message.request
        share = self._shares.get(request)
        if share is None:
            share = self._shares[request] = self._begin(request)
        if isinstance(message, Arrived):
            self._guarded(share, request, "execute", partial(self._execute, share, message))
            return
        share.waits_for -= 1
        if share.waits_for == 0:
            del self._shares[request]
            if isinstance(self.planned.component.obj, AnyBatchBolt) and self.finishes(request):
                self._guarded(share, request, "finish_batch", partial(self._finish, share, request))
            else:
                self._guarded(share, request, "execute", partial(share.collector.finish, "execute"))
            share.collector.close()
            if isinstance(self.planned.component.obj, AnyBatchBolt):
                share.context.clean_up()
            self._pass_on(request)

    def _begin(self, request: DRPCRequest) -> _Share:
        # Any object may be the id: all that the collector does with it is to compare it with first values.
        route = partial(self._route, request)
        end = None if self._edges() else _ToResult(request)
        collector = collector_of(self.env, self.planned, self.task, request.batch_id, route, end)
        context = self.env.context(self.planned.id, self.task)
        if isinstance(self.planned.component.obj, AnyBatchBolt):
            context = context.for_attempt()
        return _Share(self.senders(request), collector, context)

    def _guarded(self, share: _Share, request: DRPCRequest, where: str, call: Callable[[], None]) -> None:
        if request.over.is_set():
            return
        try:
            try:
                call()
            finally:
                readings: Readings = {}
                share.context.count_into(readings)
            request.count(readings)
        except BaseException as error:  # SystemExit too: it ends a request, not a task
            request.fail(failure_of(error, self.planned.id, self.task, where).message, error)

    def _execute(self, share: _Share, arrived: Arrived) -> None:
        bolt = self._bolt(share, arrived.request)
        if isinstance(bolt, AnyBatchBolt):
            execute_tuples(bolt, arrived.tuples, arrived.source)
        else:
            for rows in rows_of(arrived.tuples):
                for row in rows:
                    bolt.execute(Tuple(row, arrived.source), share.collector)
        share.collector.flush()

    def _finish(self, share: _Share, request: DRPCRequest) -> None:
        bolt = self._bolt(share, request)
        assert isinstance(bolt, AnyBatchBolt)
        bolt.finish_batch()
        share.collector.finish("finish_batch")

    def _bolt(self, share: _Share, request: DRPCRequest) -> AnyBolt:
        if share.bolt is None:
            if isinstance(self.planned.component.obj, IBasicBolt):
                share.bolt = self._basic = self.env.basic_bolt(self.planned.id, self.task)
                tell_of_emits(share.context, share.collector)
            else:
                bolt = self.env.fresh_bolt(self.planned.id)
                add_auto_hooks(share.context)
                bolt.prepare(self.env.conf(self.planned.id), share.context, share.collector, request.batch_id)
                share.collector.flush()
                share.bolt = hooked_batch_bolt(bolt, share.context, share.collector, self.env.world)
        return share.bolt

    def _pass_on(self, request: DRPCRequest) -> None:
        targets = {edge.target for edge in self._edges()}
        for task in (task for target in targets for task in self.env.plan.components[target].tasks):
            self.deliver(task, Complete(request))
        if not targets:
            request.ended_in_one_task()

    # ------------------------------------------------------------------------------------ what it emits

    def _edges(self) -> list[Edge]:
        return [edge for edge in self.env.plan.edges if edge.source == self.planned.id]

    def _route(self, request: DRPCRequest, edge: Edge) -> Route:
        split = self._splits.get(edge.index)
        if split is None:  # one for all requests, so that small ones are spread evenly too
            split = self._splits[edge.index] = self.env.splitter(edge, self.task, self.task)
        source = self.env.source(edge, self.task)

        def deliver(task: int, tuples: Tuples) -> None:
            self.deliver(task, Arrived(request, source, tuples))

        return HandOver(split, self.env.plan.components[edge.target].tasks, deliver)
