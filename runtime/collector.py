"""TaskCollector: what one task of one attempt emits to. It checks each tuple and hands it to the routes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stormline.runtime.rebinding import rebound
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.errors import (
    DirectStreamMismatch,
    StaleEmit,
    UndeclaredStream,
    WrongArity,
    WrongAttempt,
    did_you_mean,
)
from stormline.topology.grouping import DEFAULT_STREAM
from stormline.topology.plan import PlannedComponent
from stormline.topology.streams import StreamDeclaration

log = logging.getLogger("stormline")

Route = Callable[[int | None, Sequence[Any]], None]
"""Takes (task named by emit_direct or None, values)."""


class Output:
    """One stream of one task: what it was declared with, and where its tuples go."""

    __slots__ = ("arity", "declaration", "direct", "listeners", "routes")

    def __init__(self, declaration: StreamDeclaration, routes: Sequence[Route], listeners: frozenset[int]) -> None:
        self.declaration = declaration
        self.arity = len(declaration.fields)
        self.direct = declaration.direct
        self.listeners = listeners
        self.routes = tuple(routes)


class TaskCollector:
    """Checks and routes what a task emits for one attempt. After `close` every emit raises."""

    __slots__ = ("_attempt", "_closed", "_outputs", "_planned", "_task", "emitted")

    def __init__(
        self, planned: PlannedComponent, task: int, attempt: TransactionAttempt, outputs: Mapping[str, Output]
    ) -> None:
        self._planned = planned
        self._task = task
        self._attempt = attempt
        self._outputs = outputs
        self._closed = False
        self.emitted = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return rebound, ("collector",)

    def __deepcopy__(self, memo: Any) -> TaskCollector:
        return self

    def emit(self, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> None:
        """Emit one tuple; the first value is the attempt."""
        output = self._outputs.get(stream)
        if output is None:
            raise self._undeclared(stream)
        if output.direct:
            raise DirectStreamMismatch(
                f"{self._who()} emits plainly to stream {stream!r}, which is direct; "
                "use emit_direct(task_id, values, stream)"
            )
        self._check(values, output, stream)
        for route in output.routes:
            route(None, values)

    def emit_direct(self, task_id: int, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> None:
        """Emit one tuple of a direct stream to one task."""
        output = self._outputs.get(stream)
        if output is None:
            raise self._undeclared(stream)
        if not output.direct:
            raise DirectStreamMismatch(
                f"{self._who()} emits directly to stream {stream!r}, which is not declared with direct=True; use emit()"
            )
        if task_id not in output.listeners and output.listeners:
            raise DirectStreamMismatch(
                f"{self._who()} emits directly to task {task_id!r} on stream {stream!r}; the tasks that listen to it "
                f"are {sorted(output.listeners)}, see context.component_tasks(id)"
            )
        self._check(values, output, stream)
        for route in output.routes:
            route(task_id, values)

    def report_error(self, error: BaseException) -> None:
        """Write an error to the log and go on."""
        log.error("%s, attempt %s reports: %s", self._who(), self._attempt, error, exc_info=error)

    def close(self) -> None:
        """Refuse whatever is emitted from now on."""
        self._closed = True

    def _check(self, values: Sequence[Any], output: Output, stream: str) -> None:
        if len(values) != output.arity or isinstance(values, str):
            fields = output.declaration.fields.to_list()
            raise WrongArity(
                f"{self._who()} emits {len(values)} values {list(values)!r:.200} to stream {stream!r}, "
                f"which has the {output.arity} fields {fields}"
            )
        if values[0] is not self._attempt and values[0] != self._attempt:
            raise WrongAttempt(
                f"{self._who()} emits {values[0]!r} as first value to stream {stream!r}; expected the attempt of the "
                f"batch at hand, {self._attempt!r}, since the first field of every tuple carries it"
            )
        if self._closed:
            raise StaleEmit(f"{self._who()} emits for attempt {self._attempt}, which has ended; its tuples are ignored")
        self.emitted += 1

    def _undeclared(self, stream: str) -> UndeclaredStream:
        known = list(self._outputs)
        return UndeclaredStream(
            f"{self._who()} emits to stream {stream!r}; it declares {known}{did_you_mean(str(stream), known)}"
        )

    def _who(self) -> str:
        return f"{self._planned.component.kind.value} {self._planned.id!r}, task {self._task}"


def logged(component: str, task: int, stream: str) -> Route:
    """Return a route that logs every tuple, for components with topology.debug."""

    def route(target: int | None, values: Sequence[Any]) -> None:
        log.info("%s, task %d emits to %s%s: %r", component, task, stream, f" task {target}" if target else "", values)

    return route
