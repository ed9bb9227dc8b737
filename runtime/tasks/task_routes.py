"""Routes: where the tuples go that one task emits for one attempt, and the collector that gives them to its routes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stormline.runtime.tasks.collector import ROWS_MAX, Output, Route, TaskCollector
from stormline.runtime.tasks.debug_log import Logged
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.runtime.tuples import blocks
from stormline.runtime.tuples.columns import Columns, Row, Tuples
from stormline.runtime.tuples.packing import Packed, in_segments
from stormline.runtime.tuples.partitioning import Split
from stormline.runtime.tuples.row_bytes import SEGMENT_BYTES_MAX, in_parts, rows_within
from stormline.topology.plan import Edge, PlannedComponent

Pack = Callable[[Tuples], Packed]
Send = Callable[[int, Packed], None]


class PackedRoute:
    """The route of one attempt's tuples from one task over one edge, packed, many at a time.

    `send` takes them with the task that they are for: to its slot, or to be kept for the commit phase.
    """

    __slots__ = ("buffers", "pack", "rows_max", "send", "split", "tasks")

    def __init__(self, split: Split, tasks: Sequence[int], pack: Pack, send: Send) -> None:
        self.tasks = tasks
        self.split = split
        self.pack = pack
        self.send = send
        self.buffers: dict[int, list[Row]] = {}
        self.rows_max = blocks.SEGMENT_ROWS_MAX

    def take(self, tuples: Tuples) -> None:
        if not isinstance(tuples, Columns):
            self.rows_max = rows_within(tuples[-1], blocks.SEGMENT_ROWS_MAX)
        for target, share in self.split(tuples):
            if isinstance(share, Columns):
                self._flush(target)
                for part in in_segments(share):
                    self._send(target, part)
            else:
                self._add(target, share)

    def take_direct(self, task: int, row: Row) -> None:
        if task in self.tasks:
            self.rows_max = rows_within(row, blocks.SEGMENT_ROWS_MAX)
            self._add(task, [row])

    def _add(self, target: int, rows: list[Row]) -> None:
        buffer = self.buffers.setdefault(target, rows)
        if buffer is not rows:
            buffer += rows
        if len(buffer) >= self.rows_max:
            self._flush(target)

    def _flush(self, target: int) -> None:
        rows = self.buffers.pop(target, None)
        if rows:
            for part in in_parts(rows):
                self._send(target, part)

    def _send(self, target: int, tuples: Tuples) -> None:
        packed = self.pack(tuples)
        if len(packed.data) <= SEGMENT_BYTES_MAX or isinstance(tuples, Columns) or len(tuples) == 1:
            self.send(target, packed)
            return
        half = len(tuples) // 2
        for part in (tuples[:half], tuples[half:]):
            self._send(target, part)

    def flush(self) -> None:
        for target in list(self.buffers):
            self._flush(target)


class HandOver:
    """The route of one attempt's tuples from one task over one edge to tasks of this slot, by plain call."""

    def __init__(self, split: Split, tasks: Sequence[int], deliver: Callable[[int, Tuples], None]) -> None:
        self._split = split
        self._tasks = tasks
        self._deliver = deliver

    def take(self, tuples: Tuples) -> None:
        for target, share in self._split(tuples):
            self._deliver(target, share)

    def take_direct(self, task: int, row: Row) -> None:
        if task in self._tasks:
            self._deliver(task, [row])

    def flush(self) -> None: ...


def collector_of(
    env: TaskEnvironment,
    planned: PlannedComponent,
    task: int,
    attempt: Any,
    route: Callable[[Edge], Route],
    end: Route | None = None,
) -> TaskCollector:
    """Return what a task emits to for one attempt.

    Args:
        route: makes the route of its tuples over one edge.
        end: takes all that it emits, too.
    """
    outputs: dict[str, Output] = {}
    debug, outlets = env.outlets(planned.id)
    for stream, declaration, edges, listeners in outlets:
        routes: list[Route] = [Logged(planned.id, task, stream)] if debug else []
        routes += map(route, edges)
        if end is not None:
            routes.append(end)
        outputs[stream] = Output(declaration, routes, listeners, 1 if debug else ROWS_MAX)
    return TaskCollector(planned, task, attempt, outputs)
