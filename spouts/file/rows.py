"""RowFormat: turns the bytes of rows into values, fast where all is well, one by one where it is not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from stormline.spouts.file.boundaries import RowBoundaries

_SLICE_ROWS = 64  # the end of a CSV row is looked for in a few, as each look may go through all the bytes given


class RowProblem(Exception):
    """A row cannot be read; the text says why."""


class RowFormat(ABC):
    """How rows are written in a file of lines, and which values are taken from them."""

    has_header = False

    def __init__(self, encoding: str, boundaries: RowBoundaries) -> None:
        self.encoding = encoding
        self.boundaries = boundaries

    def header(self, row: bytes, path: str, line: int) -> list[str] | None:
        """Return the names that the header row gives; raise `BadHeader`."""
        raise NotImplementedError

    @abstractmethod
    def read(self, data: bytes) -> Iterator[Sequence[Any]]:
        """Give the values of each row of `data`; raise `RowProblem` at the first row that cannot be read."""

    @abstractmethod
    def read_one(self, row: bytes) -> Sequence[Any]:
        """Return the values of the one row that `row` is; raise `RowProblem` with a text that explains."""

    def decode(self, data: bytes) -> str:
        """Return `data` as text; raise `RowProblem`."""
        try:
            return data.decode(self.encoding)
        except UnicodeDecodeError as error:
            bad = data[error.start : error.start + 1]
            raise RowProblem(
                f"byte 0x{bad.hex()} at position {error.start + 1} of the row is not {self.encoding} ({error.reason}); "
                "is encoding= right?"
            ) from None


def each_row(data: bytes, rows: RowFormat) -> Iterator[tuple[int, Sequence[Any] | RowProblem]]:
    """Give where each row of a piece ends, and its values, or what is wrong with it."""
    boundaries = rows.boundaries
    begin = 0
    while begin < len(data):
        end, found = boundaries.after_rows(data, begin, _SLICE_ROWS, True)
        if not found:
            return  # blank lines
        part = data[begin:end]
        ends = _ends(part, found, boundaries)
        try:
            values: list[Sequence[Any] | RowProblem] = list(rows.read(part))
        except RowProblem:
            values = []
        if len(values) != found:
            values = [_one(part[start:stop], rows) for start, stop in zip([0, *ends], ends, strict=False)]
        for stop, row in zip(ends, values, strict=True):
            yield begin + stop, row
        begin = end


def _ends(data: bytes, rows: int, boundaries: RowBoundaries) -> list[int]:
    if data.count(b"\n") == rows and data.endswith(b"\n"):  # as many lines as rows: each is one
        return list(accumulate(len(line) + 1 for line in data[:-1].split(b"\n")))
    ends = []
    offset = 0
    for _ in range(rows):
        offset, _ = boundaries.after_rows(data, offset, 1, True)
        ends.append(offset)
    return ends


def _one(row: bytes, rows: RowFormat) -> Sequence[Any] | RowProblem:
    start, _ = rows.boundaries.after_blanks(row, 0, True)
    try:
        return rows.read_one(row[start:])
    except RowProblem as problem:
        return problem


class TextRows(RowFormat):
    """Each line is a row of one value."""

    def __init__(self, encoding: str) -> None:
        super().__init__(encoding, RowBoundaries(skip_blank=False))

    def read(self, data: bytes) -> Iterator[Sequence[Any]]:
        lines = self.decode(data).split("\n")
        if not lines[-1]:
            lines.pop()
        for line in lines:
            yield (line[:-1] if line.endswith("\r") else line,)

    def read_one(self, row: bytes) -> Sequence[Any]:
        return next(self.read(row))
