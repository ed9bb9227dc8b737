"""Blocks: how tuples go from stage to stage, and the counts that prove that none is missing (law 5, complete input).

A block is bytes: one byte that names the stage it is for (`FOR_DRIVER`: a report), then msgpack of

    [version, epoch, wave, source stage, source slot, execution, segments, closing]

`execution` is made up anew whenever a slot runs. Spark may run a slot twice, and what is not deterministic then gives
other tuples, which may be as many: only what one execution gave is one batch.

A segment is a delivery of one attempt: [attempt index, edge, source task, target task, number of rows, packed tuples,
their kind]: rows or a record batch, without the attempt, see `packing.py`.
The closing block of a source slot holds the counts [attempt
index, edge, source task, target task, rows sent] of all that it sent to that target slot (what is not named there is
zero), and the indexes of the attempts that have failed there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from stormline.runtime.tuples.delivery import Delivery
from stormline.runtime.tuples.packing import KINDS, Packed
from stormline.topology.errors import CorruptData, shown
from stormline.topology.packing import msgpack

VERSION = 2
FOR_DRIVER = 255
SEGMENT_ROWS_MAX = 4096
BLOCK_BYTES = 1 << 18

Count = tuple[int, int, int, int]  # attempt index, edge, source task, target task


Segment = tuple[int, Delivery]
"""The index of an attempt in its wave, and packed tuples of it."""


@dataclass(frozen=True, slots=True)
class Block:
    """What one source slot sends to one target slot at a time; `closing` in its last one."""

    source_stage: int
    source_slot: int
    execution: bytes
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


Source = tuple[int, int, bytes]
"""Whose a block is: stage, slot, and which execution of it."""


def stage_of(block: bytes) -> int:
    """Return the stage that a block is for."""
    return block[0]


def encode(target_stage: int, origin: Origin, source: Source, segments: list[Any], closing: Any) -> bytes:
    """Return a block as bytes."""
    body: bytes = msgpack.packb([VERSION, origin.epoch, origin.wave, *source, segments, closing], use_bin_type=True)
    return bytes([target_stage]) + body


def decode(block: bytes, origin: Origin) -> Block:
    """Return the block that `encode` gave.

    Raises:
        CorruptData: it is no block, or one of another epoch or wave.
    """
    try:
        version, epoch, wave, stage, slot, execution, segments, closing = msgpack.unpackb(
            memoryview(block)[1:], raw=False
        )
        if (version, epoch, wave) != (VERSION, origin.epoch, origin.wave):
            raise CorruptData(
                f"a block of version {shown(version)}, epoch {shown(epoch)}, wave {shown(wave)}; expected version "
                f"{VERSION}, epoch {origin.epoch}, wave {origin.wave}"
            )
        if not _are_numbers((stage, slot)):
            raise CorruptData(_NO_NUMBERS)
        if type(execution) is not bytes:
            raise CorruptData("a block whose execution is no bytes")
        if closing is not None:
            counts, failed = closing
            if not _are_numbers([*chain.from_iterable(counts), *failed]):
                raise CorruptData(_NO_NUMBERS)
            closing = Closing({(a, e, s, t): n for a, e, s, t, n in counts}, failed)
        numbers: list[Any] = []
        decoded: list[Segment] = []
        for a, e, s, t, rows, data, kind in segments:
            numbers += (a, e, s, t, rows, kind)
            if type(data) is not bytes or kind not in KINDS:
                raise CorruptData("a block whose tuples are no bytes, or of a kind that is not known")
            decoded.append((a, Delivery(e, s, t, Packed(rows, data, kind))))
        if not _are_numbers(numbers):
            raise CorruptData(_NO_NUMBERS)
        return Block(stage, slot, execution, decoded, closing)
    except (ValueError, TypeError, OverflowError, msgpack.UnpackException) as error:
        if isinstance(error, CorruptData):
            raise
        raise CorruptData(f"{len(block)} bytes that are no block: {error}") from error


_NUMBERS = {int}
_NO_NUMBERS = "a block whose attempts, edges, tasks or counts are no whole numbers"


def _are_numbers(values: Sequence[Any]) -> bool:
    return not values or (set(map(type, values)) == _NUMBERS and min(values) >= 0)


def difference(sent: Mapping[Count, int], held: Mapping[Count, int]) -> str:
    """Return where counts of tuples that were sent are not those of tuples that came."""
    count = next(count for count in sent.keys() | held.keys() if sent.get(count, 0) != held.get(count, 0))
    _, edge, source_task, target_task = count
    return (
        f"task {target_task} holds {held.get(count, 0)} of the {sent.get(count, 0)} tuples that task {source_task} "
        f"sent over edge {edge}"
    )


@dataclass(slots=True)
class Outbox:
    """Collects what one slot of a stage sends, and makes blocks of it: (target slot, block)."""

    origin: Origin
    source: Source
    slot_of: Callable[[int], tuple[int, int]]
    ready: list[tuple[int, bytes]] = field(default_factory=list)
    _segments: dict[tuple[int, int], list[Any]] = field(default_factory=dict)
    _bytes: dict[tuple[int, int], int] = field(default_factory=dict)
    _counts: dict[Count, int] = field(default_factory=dict)

    def send(self, count: Count, packed: Packed) -> None:
        """Send packed tuples of one attempt to one task, and count them."""
        self._counts[count] = self._counts.get(count, 0) + packed.rows
        target = self.slot_of(count[3])
        self._segments.setdefault(target, []).append([*count, packed.rows, packed.data, packed.kind])
        size = self._bytes[target] = self._bytes.get(target, 0) + len(packed.data)
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
