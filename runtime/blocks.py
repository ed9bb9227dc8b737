"""Blocks: how tuples travel from stage to stage, and the counts that prove that none is missing (law 5).

A block is bytes: one byte that names the stage it is for (`FOR_DRIVER`: a report), then msgpack of

    [version, epoch, wave, source stage, source slot, segments, closing]

A segment is [attempt index, edge, source task, target task, number of rows, packed rows]; packed rows are
[number of rows, a list of values for each field after the first]: the attempt does not travel with each row. The
closing block of a source slot holds the counts [attempt index, edge, source task, target task, rows sent] of all that
it sent to that target slot (what is not named there is zero), and the indexes of the attempts that have failed there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from stormline.runtime.routing import Row
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.errors import CorruptData, UnregisteredClass
from stormline.topology.packing import msgpack
from stormline.topology.plan import Edge, Plan
from stormline.topology.serialization import Registry

VERSION = 1
FOR_DRIVER = 255
SEGMENT_ROWS_MAX = 4096
BLOCK_BYTES = 1 << 18

Count = tuple[int, int, int, int]  # attempt index, edge, source task, target task


@dataclass(frozen=True, slots=True)
class Segment:
    """Rows of one attempt from one task to another."""

    attempt: int
    edge: int
    source_task: int
    target_task: int
    rows: int
    packed: bytes


@dataclass(frozen=True, slots=True)
class Block:
    """What one source slot sends to one target slot at a time; `closing` in its last one."""

    source_stage: int
    source_slot: int
    segments: list[Segment]
    closing: Closing | None


@dataclass(frozen=True, slots=True)
class Closing:
    """The end of what one source slot sends to one target slot."""

    counts: dict[Count, int]
    failed: list[int]


@dataclass(frozen=True, slots=True)
class Origin:
    """Whose blocks these are: those of another epoch or wave are not ours."""

    epoch: int
    wave: int


def stage_of(block: bytes) -> int:
    """Return the stage that a block is for."""
    return block[0]


def encode(target_stage: int, origin: Origin, source: tuple[int, int], segments: list[Any], closing: Any) -> bytes:
    """Return a block as bytes."""
    body: bytes = msgpack.packb([VERSION, origin.epoch, origin.wave, *source, segments, closing], use_bin_type=True)
    return bytes([target_stage]) + body


def decode(block: bytes, origin: Origin) -> Block:
    """Return the block that `encode` gave.

    Raises:
        CorruptData: it is no block, or one of another epoch or wave.
    """
    try:
        version, epoch, wave, stage, slot, segments, closing = msgpack.unpackb(memoryview(block)[1:], raw=False)
        if (version, epoch, wave) != (VERSION, origin.epoch, origin.wave):
            raise CorruptData(
                f"a block of version {version}, epoch {epoch}, wave {wave}; expected version {VERSION}, "
                f"epoch {origin.epoch}, wave {origin.wave}"
            )
        if closing is not None:
            counts, failed = closing
            closing = Closing({(a, e, s, t): n for a, e, s, t, n in counts}, failed)
        return Block(stage, slot, [Segment(*segment) for segment in segments], closing)
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        if isinstance(error, CorruptData):
            raise
        raise CorruptData(f"{len(block)} bytes that are no block: {error}") from error


def pack_rows(rows: list[Row], source: str, stream: str, plan: Plan, registry: Registry) -> bytes:
    """Return rows as bytes, column by column; an `UnregisteredClass` names component, stream and field."""
    fields = plan.components[source].component.streams[stream].fields
    columns = [[row[i] for row in rows] for i in range(1, len(fields))]
    try:
        return registry.pack([len(rows), *columns])
    except UnregisteredClass:
        for name, column in zip(fields[1:], columns, strict=True):
            for value in column:
                try:
                    registry.pack(value)
                except UnregisteredClass as error:
                    raise UnregisteredClass(
                        f"{source!r} emitted to stream {stream!r}, field {name!r}: {error}"
                    ) from None
        raise


def unpack_rows(packed: bytes, attempt: TransactionAttempt, registry: Registry) -> list[Row]:
    """Return the rows that `pack_rows` packed, each beginning with `attempt`.

    Raises:
        CorruptData: they are none.
    """
    rows, *columns = registry.unpack(packed)
    if not columns:
        return [[attempt] for _ in range(rows)]
    if any(len(column) != rows for column in columns):
        raise CorruptData(f"columns of {[len(column) for column in columns]} values, expected {rows} in each")
    if len(columns) == 1:
        return [[attempt, value] for value in columns[0]]
    return [[attempt, *values] for values in zip(*columns, strict=True)]


@dataclass(slots=True)
class Outbox:
    """Collects what one slot of a stage sends, and makes blocks of it: (target slot, block)."""

    plan: Plan
    registry: Registry
    origin: Origin
    source: tuple[int, int]
    slot_of: Callable[[int], tuple[int, int]]
    ready: list[tuple[int, bytes]] = field(default_factory=list)
    _segments: dict[tuple[int, int], list[Any]] = field(default_factory=dict)
    _bytes: dict[tuple[int, int], int] = field(default_factory=dict)
    _counts: dict[Count, int] = field(default_factory=dict)

    def send(self, attempt: int, edge: Edge, source_task: int, target_task: int, rows: list[Row]) -> None:
        """Send rows of one attempt to one task, and count them."""
        packed = pack_rows(rows, edge.source, edge.stream, self.plan, self.registry)
        count = (attempt, edge.index, source_task, target_task)
        self._counts[count] = self._counts.get(count, 0) + len(rows)
        target = self.slot_of(target_task)
        self._segments.setdefault(target, []).append([*count, len(rows), packed])
        size = self._bytes[target] = self._bytes.get(target, 0) + len(packed)
        if size >= BLOCK_BYTES:
            self._flush(target)

    def _flush(self, target: tuple[int, int], closing: Any = None) -> None:
        stage, slot = target
        self.ready.append((slot, encode(stage, self.origin, self.source, self._segments.pop(target, []), closing)))
        self._bytes[target] = 0

    def close(self, targets: list[tuple[int, int]], failed: list[int]) -> None:
        """Send the rest, the counts, and which attempts failed here, to every (stage, slot) that listens."""
        counts: dict[tuple[int, int], list[Any]] = {target: [] for target in targets}
        for count, rows in self._counts.items():
            counts[self.slot_of(count[3])].append([*count, rows])
        for target in targets:
            self._flush(target, [counts[target], failed])

    def drain(self) -> list[tuple[int, bytes]]:
        """Return the blocks that are full, once."""
        ready, self.ready = self.ready, []
        return ready
