"""RowFormat: turns the bytes of rows into values, fast where all is well, one by one where it is not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from stormline.spouts.file.boundaries import RowBoundaries


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
