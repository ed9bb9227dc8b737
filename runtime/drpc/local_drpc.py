"""LocalDRPC: answers requests by topologies of LinearDRPCTopologyBuilder, in this process."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from stormline.runtime.coordination.progress import MetricTotals
from stormline.runtime.drpc.drpc_task import Arrived, Complete, DRPCRequest, DRPCTask, Message
from stormline.runtime.errors import DRPCExecutionException, UnknownFunction
from stormline.runtime.tasks.debug_log import show_debug
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.topology.compiler import compile_topology
from stormline.topology.drpc import DRPCTopology, check_one_finishes
from stormline.topology.errors import did_you_mean
from stormline.topology.plan import Plan

log = logging.getLogger("stormline")

TIMEOUT_SECS = 600.0
"""Time that a request may take: Storm's drpc.request.timeout.secs."""

END_SECS = 5.0
"""Time for which `kill` waits for bolts that are at work."""


class RunningFunction:
    """The handle of a function that answers: a thread for each task of its bolts."""

    def __init__(self, name: str, plan: Plan) -> None:
        self.name = name
        self.function = plan.topology_id
        self._env = TaskEnvironment(plan, epoch=0)
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        self._open: set[DRPCRequest] = set()
        self._metrics = MetricTotals(self._env.world)
        self._running = True
        self._bolts = [plan.components[bolt.id] for bolt in plan.topology.bolts]
        (self._arguments,) = plan.in_edges(self._bolts[0].id)
        self._split_arguments = self._env.splitter(self._arguments, plan.spout.tasks[0], 0)
        self._tasks = {task: self._task(number, task) for number, bolt in enumerate(self._bolts) for task in bolt.tasks}
        self._threads = [
            threading.Thread(target=task.work, daemon=True, name=f"stormline-{self.function}-{task.task}")
            for task in self._tasks.values()
        ]
        for thread in self._threads:
            thread.start()

    def _task(self, number: int, task: int) -> DRPCTask:
        bolt = self._bolts[number]
        last = number == len(self._bolts) - 1 and len(bolt.tasks) > 1
        edge = self._env.plan.in_edges(bolt.id)[0]
        split = self._env.splitter(edge, task, 0) if last else None

        def senders(request: DRPCRequest) -> int:
            # Of the first bolt only tasks that got the arguments pass anything on; they get those from one place.
            return 1 if number == 0 else request.first_tasks if number == 1 else len(self._bolts[number - 1].tasks)

        def finishes(request: DRPCRequest) -> bool:
            # To a last bolt of several tasks all tuples of a request come by its id, or to the lowest task.
            return split is None or [target for target, _ in split([[request.batch_id]])] == [task]

        return DRPCTask(self._env, bolt, task, self._deliver, senders, finishes)

    def _deliver(self, task: int, message: Message) -> None:
        self._tasks[task].inbox.put(message)

    @property
    def running(self) -> bool:
        """Whether it answers requests."""
        return self._running

    def execute(self, args: Any, timeout_secs: float | None) -> Any:
        """Return the result of one request; see `LocalDRPC.execute`."""
        request = self._begin(args)
        ended = request.over.wait(timeout_secs)
        with self._lock:
            self._open.discard(request)
        if not ended:
            request.fail(f"it has no result after {timeout_secs:g} s")
        who = f"DRPC function {self.function!r}, request {request.batch_id}"
        if request.failure is not None:
            message, cause = request.failure
            raise DRPCExecutionException(f"{who}: {message}") from cause
        if len(request.results) != 1:
            last = self._bolts[-1].id
            raise DRPCExecutionException(
                f"{who}: the last bolt, {last!r}, has emitted {len(request.results)} results, expected one; let it "
                "emit [request id, result] once a request"
            )
        self._metrics.add(request.metrics)
        return request.results[0]

    def metrics(self) -> dict[str, dict[str, Any]]:
        """Return what metrics have counted in requests that were answered; as `TopologyHandle.metrics`."""
        return self._metrics.values()

    def _begin(self, args: Any) -> DRPCRequest:
        with self._lock:
            if not self._running:
                raise UnknownFunction(f"DRPC function {self.function!r} was killed; submit its topology again")
            batch_id = next(self._ids)
            try:
                shares = list(self._split_arguments([[batch_id, args]]))
            except BaseException as error:  # a user's own grouping
                message = f"{type(error).__name__} in the grouping of its arguments: {error}"
                raise DRPCExecutionException(
                    f"DRPC function {self.function!r}, request {batch_id}: {message}"
                ) from error
            first_tasks = len(shares)
            request = DRPCRequest(batch_id, first_tasks, len(self._bolts[-1].tasks) if self._bolts[1:] else first_tasks)
            if not shares:
                request.fail("the grouping of the first bolt has chosen no task for its arguments")
            self._open.add(request)
            source = self._env.source(self._arguments, self._env.plan.spout.tasks[0])
            for task, rows in shares:
                self._deliver(task, Arrived(request, source, rows))
                self._deliver(task, Complete(request))
            return request

    def kill(self, timeout_secs: float | None = None) -> None:
        """Fail the requests that are not answered, and end. A bolt that hangs is left behind after a while."""
        with self._lock:
            if not self._running:
                return
            self._running = False
            for request in self._open:
                request.fail("the function was killed")
            for task in self._tasks.values():
                task.inbox.put(None)
        deadline = time.monotonic() + (END_SECS if timeout_secs is None else timeout_secs)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, deadline - time.monotonic()))
                if thread.is_alive():
                    log.warning("DRPC function %r: thread %s hangs and is left behind", self.function, thread.name)


class LocalDRPC:
    """Answers requests to the functions that were submitted with it, from any number of threads. A context manager.

    Storm 1.2.4: LocalDRPC.
    """

    def __init__(self) -> None:
        self._functions: dict[str, RunningFunction] = {}

    def __enter__(self) -> LocalDRPC:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.shutdown()

    def submit_topology(self, name: str, config: Mapping[str, Any] | None, topology: DRPCTopology) -> RunningFunction:
        """Let a topology answer requests to its function, in place of an earlier one; what clusters call.

        Args:
            name (str): what the function's topology is called.
            config (Mapping[str, Any] | None): the topology's configuration; None: all as by default.
            topology (DRPCTopology): what `create_local_topology` returned.

        Returns:
            the handle of the function, whose `kill` ends it.

        Raises:
            DeclarationError: the topology or its configuration is wrong.
        """
        plan = compile_topology(topology.topology, config)
        check_one_finishes(plan.topology, len(plan.components[plan.topology.bolts[-1].id].tasks))
        show_debug(plan)
        earlier = self._functions.get(topology.function)
        running = self._functions[topology.function] = RunningFunction(name, plan)
        if earlier is not None:
            earlier.kill()
        return running

    def execute(self, function: str, args: Any, timeout_secs: float | None = TIMEOUT_SECS) -> Any:
        """Let a function answer one request, and return the result that its last bolt emits.

        Args:
            function (str): name of the function.
            args (Any): what the first bolt gets, as the second value of a tuple.
            timeout_secs (float | None): seconds to wait for the result; 600, unless given, as Storm's
                drpc.request.timeout.secs; None: for ever.

        Returns:
            the second value of the one tuple that the last bolt has emitted for this request.

        Raises:
            UnknownFunction: no topology of this function was submitted.
            DRPCExecutionException: a bolt has raised (its error is the cause), the last bolt has not emitted exactly
                one result, or there was none within `timeout_secs`.
        """
        running = self._functions.get(function)
        if running is None:
            raise UnknownFunction(
                f"DRPC function {function!r}: no topology of it was submitted; there are {sorted(self._functions)}"
                f"{did_you_mean(function, self._functions)}"
            )
        return running.execute(args, timeout_secs)

    def shutdown(self) -> None:
        """Kill all functions; requests that are not answered fail."""
        for running in self._functions.values():
            running.kill()
