"""TaskCollector: what one task of one attempt emits to. It checks each tuple and hands it to the routes."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from threading import get_ident
from typing import Any, Protocol

from stormline.runtime.tasks.emitted_batches import BatchCheck
from stormline.runtime.tuples.columns import Columns, Row, Tuples
from stormline.runtime.tuples.row_bytes import rows_within
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.errors import (
    DirectStreamMismatch,
    EmitError,
    StaleEmit,
    UndeclaredStream,
    WrongArity,
    WrongAttempt,
    did_you_mean,
)
from stormline.topology.grouping import DEFAULT_STREAM
from stormline.topology.plan import PlannedComponent
from stormline.topology.storm_names import storm_names
from stormline.topology.streams import StreamDeclaration
from stormline.topology.texts import told

log = logging.getLogger("stormline")

ROWS_MAX = 256
"""Rows of one stream that wait to be routed together."""

FIRST_ROWS = 16
"""Rows that wait before the bytes of one are looked at: where they are large no more wait."""


class Route(Protocol):
    """Where the tuples of one stream of one task go. Rows become the route's own."""

    def take(self, tuples: Tuples) -> None:
        """Take tuples that were emitted plainly, at least one."""

    def take_direct(self, task: int, row: Row) -> None:
        """Take a row that was emitted to one task by name."""

    def flush(self) -> None:
        """Send on whatever waits for more: the task emits nothing more for this attempt."""


@dataclass(frozen=True, slots=True)
class _Direct:
    """A row that a thread of the user's emitted to one task: it waits among the others."""

    task: int
    row: Row


class Output:
    """One stream of one task: what it was declared with, where its tuples go, and the rows not routed yet.

    `rows` is one list for ever: any thread may append to it, and only the owner of the collector takes from it, at its
    front. `mixed`: a thread of the user's has put in what is no row, as it may not route itself.
    """

    __slots__ = (
        "arity",
        "check",
        "declaration",
        "listeners",
        "mixed",
        "routed",
        "routes",
        "rows",
        "rows_max",
        "waiting_max",
    )

    def __init__(
        self,
        declaration: StreamDeclaration,
        routes: Sequence[Route],
        listeners: frozenset[int] = frozenset(),
        rows_max: int = ROWS_MAX,
    ) -> None:
        self.declaration = declaration
        self.arity = len(declaration.fields)
        self.listeners = listeners
        self.routes = tuple(routes)
        self.rows: list[Any] = []
        self.rows_max = rows_max
        self.waiting_max = min(FIRST_ROWS, rows_max)
        self.mixed = False
        self.routed = 0
        self.check: BatchCheck | None = None

    def full(self) -> None:
        """Route the rows that wait, or let more of them wait where they are small."""
        rows = len(self.rows)
        if rows < self.rows_max and not self.mixed:
            self.waiting_max = rows_within(self.rows[-1], self.rows_max)
        if rows >= self.waiting_max:
            self.flush()
            self.waiting_max = min(FIRST_ROWS, self.rows_max)

    def flush(self) -> None:
        """Route the rows that wait."""
        rows = self.rows
        taken = rows[:]
        del rows[: len(taken)]
        if not self.mixed:
            self.route(taken)
            return
        for kind, group in groupby(taken, type):
            items = list(group)
            if kind is list:
                self.route(items)
            elif kind is _Direct:
                for item in items:
                    self.route_direct(item.task, item.row)
            else:
                for columns in items:
                    self.route(columns)

    def keep(self, item: Columns | _Direct) -> None:
        """Let what is no row wait among the rows."""
        self.mixed = True  # first: who takes the item must know
        self.rows.append(item)

    @property
    def waiting(self) -> int:
        """Number of tuples that wait."""
        return (
            sum(len(item) if isinstance(item, Columns) else 1 for item in self.rows) if self.mixed else len(self.rows)
        )

    def route(self, tuples: Tuples) -> None:
        """Route tuples, at least one."""
        self.routed += len(tuples)
        if self.routes:
            for route in self.routes[:-1]:
                route.take(tuples if isinstance(tuples, Columns) else [[*row] for row in tuples])
            self.routes[-1].take(tuples)

    def route_direct(self, task: int, values: Sequence[Any]) -> None:
        """Route one tuple to one task."""
        self.routed += 1
        for route in self.routes:
            route.take_direct(task, [*values])


@storm_names()
class TaskCollector:
    """Checks and routes what a task emits for one attempt. After `close` every emit raises.

    Emitted rows wait, to be routed together: until there are enough, or `flush` at the end of a call of user code.
    Where routing fails, rows of earlier calls are lost with it: `flush` raises the error again, though user code may
    have caught it, so that the attempt fails.

    Any thread may emit, as in Storm. Only the owner routes, since downstream code runs in it: the thread that made it,
    or called `take_over` last. What others emit waits for the next `flush`. There is no lock: to append to a list,
    and to take a part of one, are single steps.
    """

    __slots__ = ("_attempt", "_closed", "_lost_rows", "_outputs", "_owner", "_plain", "_planned", "_task")

    def __init__(
        self, planned: PlannedComponent, task: int, attempt: TransactionAttempt, outputs: Mapping[str, Output]
    ) -> None:
        self._planned = planned
        self._task = task
        self._attempt = attempt
        self._outputs = outputs
        self._plain = {stream: output for stream, output in outputs.items() if not output.declaration.direct}
        self._closed = False
        self._lost_rows: BaseException | None = None
        self._owner = get_ident()

    def __deepcopy__(self, memo: Any) -> TaskCollector:
        return self

    def emit(self, values: Sequence[Any], stream: Any = DEFAULT_STREAM) -> None:
        """Emit one tuple; the first value is the attempt. Storm's order, the stream first, is understood too."""
        try:
            output = self._plain[stream]
        except (KeyError, TypeError):
            self.emit(*self._reordered(values, stream))
            return
        if len(values) != output.arity or values[0] is not self._attempt:
            self._check(values, output, stream)
        rows = output.rows
        rows.append([*values])
        if len(rows) >= output.waiting_max and get_ident() == self._owner:
            self._guarded(output.full)

    def emit_all(self, rows: list[list[Any]], stream: str = DEFAULT_STREAM) -> None:
        """Emit many tuples; the lists become the engine's own, so the caller changes none of them any more."""
        output = self._plain.get(stream)
        if output is None:
            raise self._refused((), stream)
        arity, attempt = output.arity, self._attempt
        for row in rows:
            if type(row) is not list or len(row) != arity or row[0] is not attempt:
                rows = self._checked(rows, output, stream)
                break
        if get_ident() != self._owner:
            output.rows.extend(rows)
            return
        if output.rows:
            self._guarded(output.flush)
        if rows:
            self._guarded(output.route, rows)

    def emit_batch(self, batch: Any, stream: str = DEFAULT_STREAM) -> None:
        """Emit each row of a record batch, or of a table, as one tuple."""
        for checked in self.checked(batch, stream):
            output = self._plain.get(stream)
            if output is None:  # closed meanwhile, by another thread: an abandoned commit
                raise self._refused((), stream)
            if get_ident() != self._owner:
                output.keep(checked)
                continue
            if output.rows:
                self._guarded(output.flush)
            self._guarded(output.route, checked)

    def checked(self, batch: Any, stream: str) -> list[Columns]:
        """Return what `emit_batch` would route; raise what it raises."""
        output = self._plain.get(stream)
        if output is None:
            raise self._refused((), stream)
        if output.check is None:
            output.check = BatchCheck(output.declaration.fields, f"{self._who()}, to stream {stream!r},")
        return [Columns(self._attempt, checked) for checked in output.check(batch) if checked.num_rows]

    def emit_direct(self, task_id: int, values: Sequence[Any], stream: Any = DEFAULT_STREAM) -> None:
        """Emit one tuple of a direct stream to one task. Storm's order, the stream before values, is understood too."""
        try:
            output = self._outputs[stream]
        except (KeyError, TypeError):
            self.emit_direct(task_id, *self._reordered(values, stream))
            return
        if self._closed:
            raise self._refused(values, stream)
        if not output.declaration.direct:
            raise DirectStreamMismatch(
                f"{self._who()} emits directly to stream {stream!r}, which is not declared with direct=True; use emit()"
            )
        if task_id not in output.listeners and output.listeners:
            raise DirectStreamMismatch(
                f"{self._who()} emits directly to task {task_id!r} on stream {stream!r}; the tasks that listen to it "
                f"are {sorted(output.listeners)}, see context.component_tasks(id)"
            )
        self._check(values, output, stream)
        if get_ident() != self._owner:
            output.keep(_Direct(task_id, [*values]))
            return
        if output.rows:
            self._guarded(output.flush)
        self._guarded(output.route_direct, task_id, values)

    def in_our_order(self, values: Sequence[Any], stream: Any) -> tuple[Sequence[Any], Any]:
        """Return values and stream, which may have been given in Storm's order: the stream first.

        A text is no row, since a row begins with the attempt.
        """
        storms = isinstance(values, str) and (
            not isinstance(stream, str) or (values in self._outputs and stream not in self._outputs)
        )
        return (stream, values) if storms else (values, stream)

    def report_error(self, error: BaseException) -> None:
        """Write an error to the log and go on."""
        trace = told("".join(traceback.format_exception(error))).rstrip()
        log.error("%s, attempt %s reports an error\n%s", self._who(), self._attempt, trace)

    @property
    def planned(self) -> PlannedComponent:
        """The component whose task emits."""
        return self._planned

    @property
    def emitted(self) -> int:
        """Number of tuples emitted so far."""
        return sum([output.routed + (output.waiting if output.rows else 0) for output in self._outputs.values()])

    def take_over(self) -> None:
        """Make the calling thread the owner: user code is called in it from now on."""
        self._owner = get_ident()

    def flush(self) -> None:
        """Route all that waits, in the owner's thread; raise what routing has raised in an emit before."""
        if self._lost_rows is not None:
            raise self._lost_rows
        for output in self._outputs.values():
            if output.rows and not self._closed:
                self._guarded(output.flush)

    def finish(self, where: str) -> None:
        """Route all that waits, flush the routes, and close: `where`, the last call of user code, has returned.

        Raises:
            StaleEmit: a thread of the user's has emitted since: its tuples, and those that may follow, would be lost.
        """
        self.flush()
        aborted = self._closed
        self.close()
        if aborted:
            return
        for output in self._outputs.values():
            if output.rows:
                late = sum(output.waiting for output in self._outputs.values())
                raise StaleEmit(
                    f"{self._who()}: a thread of its own emitted {late} tuples for attempt {self._attempt} after "
                    f"{where} had returned; join it in {where}"
                )
            for route in output.routes:
                route.flush()

    def _guarded(self, routing: Callable[..., None], *what: Any) -> None:
        """Route, and keep what that raises."""
        try:
            routing(*what)
        except BaseException as error:
            self._lost_rows = error
            raise

    def close(self) -> None:
        """Refuse whatever is emitted from now on."""
        self._closed = True
        self._plain = {}

    def hear(self, route_of: Callable[[str], Route]) -> None:
        """Let one more route of each stream, the first to be asked, take what is routed from now on."""
        for stream, output in self._outputs.items():
            output.routes = (route_of(stream), *output.routes)

    def _checked(self, rows: Sequence[Sequence[Any]], output: Output, stream: str) -> list[Row]:
        for row in rows:
            self._check(row, output, stream)
        return [[*row] for row in rows]

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

    def _reordered(self, values: Sequence[Any], stream: Any) -> tuple[Sequence[Any], Any]:
        """Return what was given in Storm's order in ours; refuse what was not."""
        ordered = self.in_our_order(values, stream)
        if ordered[0] is values:
            raise self._refused(values, stream) from None
        return ordered

    def _refused(self, values: Sequence[Any], stream: Any) -> EmitError:
        output = self._outputs.get(stream) if isinstance(stream, str) else None
        if output is None:
            known = list(self._outputs)
            return UndeclaredStream(
                f"{self._who()} emits to stream {stream!r:.200}; it declares {known}{did_you_mean(str(stream), known)}"
            )
        if not self._closed:
            return DirectStreamMismatch(
                f"{self._who()} emits plainly to stream {stream!r}, which is direct; "
                "use emit_direct(task_id, values, stream)"
            )
        if values:
            self._check(values, output, stream)
        return StaleEmit(f"{self._who()} emits for attempt {self._attempt}, which has ended; its tuples are ignored")

    def _who(self) -> str:
        return f"{self._planned.component.kind.value} {self._planned.id!r}, task {self._task}"
