"""Lane: the rows of one file that is read side by side with others, taken in the order of their times."""

from __future__ import annotations

import heapq
import zlib
from typing import NamedTuple

from stormline.spouts.file.byte_ranges import ByteRanges
from stormline.spouts.file.errors import MixedOrder
from stormline.spouts.file.merged_metadata import MergedPiece, OpenFile
from stormline.spouts.file.metadata import Piece
from stormline.spouts.file.order_key import Key, order_key
from stormline.spouts.file.rows import RowFormat, RowProblem, each_row

BLOCK_ROWS_MAX = 4096


class OrderField:
    """The field that rows are ordered by, and what kind of values it has: one kind in all files."""

    def __init__(self, name: str, index: int) -> None:
        self.name = name
        self.index = index
        self._kind = ""
        self._first = ""

    def of_kind(self, kind: str, at: str) -> None:
        """Check that the value of the row at `at` is of the kind that all others are of; raise `MixedOrder`."""
        if not self._kind:
            self._kind, self._first = kind, at
        elif kind != self._kind:
            raise MixedOrder.of(self.name, self._kind, self._first, kind, at)

    @property
    def kind(self) -> str:
        """The kind; "" where no row has a value yet."""
        return self._kind


class Row(NamedTuple):
    """A row that was taken."""

    key: Key
    ordinal: int
    late: bool


class Lane:
    """Gives the earliest of the first rows that are not taken, `window` + 1 of them, again and again.

    A row without a time has that of the row before it in the file, so has one that cannot be read. `head` must be
    asked before each `take`. `at` is what was stored last: all before that place is taken.
    """

    def __init__(self, layout: ByteRanges, rows: RowFormat, field: OrderField, at: OpenFile, window: int) -> None:
        self.at = at
        self._layout = layout
        self._rows = rows
        self._field = field
        self._window = window
        self._block_rows = window + 1
        self._read_to = at.position  # the end of _data
        self._data = b""  # from at.position on
        self._ends: list[int] = []  # of the rows, in _data
        self._keys: list[Key] = []
        self._first = 0  # the first row that is not taken
        self._taken = set(at.ahead)
        self._last = -1  # of the rows that were taken since
        self._newest = at.newest
        self._heap: list[tuple[Key, int]] = []  # of the rows in the window
        self._seen = 0  # rows that are in the heap, or were

    def head(self) -> Key | None:
        """Return the time of the row that comes next; None where no row is left."""
        stop = self._first + self._window + 1
        if self._seen < stop:
            while len(self._ends) < stop and not self._layout.is_at_end(self._read_to):
                self._read_on()
            for row in range(self._seen, min(stop, len(self._ends))):
                if row not in self._taken:
                    heapq.heappush(self._heap, (self._keys[row], row))
                self._seen = row + 1
        return self._heap[0][0] if self._heap else None

    def take(self) -> Row:
        """Take the row that comes next; it is late if its time is before that of one that was taken."""
        key, row = heapq.heappop(self._heap)
        late = key < self._newest
        self._newest = max(self._newest, key)
        self._taken.add(row)
        self._last = max(self._last, row)
        while self._first in self._taken:
            self._first += 1
        return Row(key, row, late)

    def line_of(self, row: int) -> int:
        """Return the number of the line, from 1, in which a row begins that was taken since."""
        start = self._ends[row - 1] if row else 0
        start, _ = self._rows.boundaries.after_blanks(self._data, start, True)
        return self.at.position.line + self._data.count(b"\n", 0, start)

    def cut(self) -> MergedPiece:
        """Return the rows that were taken since the last cut, at least one; go on after them."""
        before = self.at
        at, stop = before.position, self._last + 1
        piece = Piece(
            path=at.path,
            size=at.size,
            start=at.offset,
            end=at.offset + self._ends[stop - 1],
            line=at.line,
            rows=stop,
            crc_before=at.crc,
            crc_after=zlib.crc32(memoryview(self._data)[: self._ends[stop - 1]], at.crc),
        )
        left = tuple(row for row in range(self._first, stop) if row not in self._taken)
        self._go_on()
        return MergedPiece(piece, tuple(row for row in before.ahead if row < stop), left, before.before)

    def _go_on(self) -> None:
        at, first = self.at.position, self._first
        passed = self._ends[first - 1] if first else 0
        self.at = OpenFile(
            at._replace(
                mtime_ns=self._read_to.mtime_ns,
                offset=at.offset + passed,
                line=at.line + self._data.count(b"\n", 0, passed),
                crc=zlib.crc32(memoryview(self._data)[:passed], at.crc),
            ),
            ahead=tuple(sorted(row - first for row in self._taken if row > first)),
            before=self._keys[first - 1] if first else self.at.before,
            newest=self._newest,
        )
        self._data = self._data[passed:]
        self._ends = [end - passed for end in self._ends[first:]]
        self._keys = self._keys[first:]
        self._heap = [(key, row - first) for key, row in self._heap]
        self._seen -= first
        self._first, self._taken, self._last = 0, set(self.at.ahead), -1

    def _read_on(self) -> None:
        start, line = len(self._data), self._read_to.line
        self._read_to, data = self._layout.read(self._read_to, self._block_rows)
        self._block_rows = min(max(2 * self._block_rows, 64), max(BLOCK_ROWS_MAX, self._window + 1))
        key = self._keys[-1] if self._keys else self.at.before
        field = self._field
        for end, values in each_row(data, self._rows):
            if not isinstance(values, RowProblem):
                try:
                    found = order_key(values[field.index])
                except RowProblem:
                    found = None  # a bad row, which its emitter tells of
                if found is not None:
                    if found[0] != field.kind:
                        begin = self._ends[-1] - start if len(self._ends) and self._ends[-1] > start else 0
                        field.of_kind(found[0], f"{self.at.position.path}:{line + data.count(10, 0, begin)}")
                    key = found[1]
            self._ends.append(start + end)
            self._keys.append(key)
        self._data += data
        if self._ends:
            self._ends[-1] = len(self._data)  # blank lines at the end
