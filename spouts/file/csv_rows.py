"""CsvRows: CSV, by the standard library's csv."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from stormline.spouts.file.boundaries import RowBoundaries
from stormline.spouts.file.errors import BadHeader
from stormline.spouts.file.rows import RowFormat, RowProblem
from stormline.topology.errors import FailedException

_CAUSES = {
    "unexpected end of data": "a quote is opened and never closed",
    "new-line character": "a carriage return stands outside quotes within the row",
}


class CsvRows(RowFormat):
    """Each row has as many values as there are columns; those of `fields` are taken, in that order.

    Values are text, "" where empty, but for those that `types` converts. Quotes are read strictly: text between a
    closing quote and the next delimiter is a problem of that row.
    """

    def __init__(
        self,
        encoding: str,
        delimiter: str,
        *,
        header: bool,
        columns: Sequence[str] = (),
        fields: Sequence[str] | None = None,
        types: Mapping[str, Callable[[str], Any]] | None = None,
    ) -> None:
        super().__init__(encoding, RowBoundaries(delimiter=delimiter))
        self.has_header = header
        self._delimiter = delimiter
        self._columns = columns
        taken = list(columns if fields is None else fields)
        self._taken = None if taken == list(columns) else [columns.index(name) for name in taken]
        self._types = [(columns.index(name), name, convert) for name, convert in (types or {}).items()]

    def header(self, row: bytes, path: str, line: int) -> list[str] | None:
        if not row:
            return None
        try:
            return self._split(self.decode(row))
        except RowProblem as problem:
            raise BadHeader(f"{path}:{line}: the header row cannot be read: {problem}; correct the file") from None

    def read(self, data: bytes) -> Iterator[Sequence[Any]]:
        text = self.decode(data)
        lines: Iterable[str] = io.StringIO(text, newline="\n") if '"' in text else text.split("\n")
        rows = csv.reader(lines, delimiter=self._delimiter, strict=True)
        checked = self._checked(rows)
        if self._taken is None:
            return checked
        if len(self._taken) == 1:
            only = self._taken[0]
            return ((row[only],) for row in checked)
        return map(itemgetter(*self._taken), checked)

    def _checked(self, rows: Iterator[list[Any]]) -> Iterator[list[Any]]:
        width = len(self._columns)
        types = [(index, convert) for index, _, convert in self._types]
        try:
            if not types:
                for row in rows:
                    if len(row) == width:
                        yield row
                    elif row:
                        raise RowProblem
                return
            for row in rows:
                if len(row) == width:
                    try:
                        for index, convert in types:
                            row[index] = convert(row[index])
                    except FailedException:
                        raise
                    except Exception as error:
                        raise RowProblem from error
                    yield row
                elif row:
                    raise RowProblem
        except csv.Error as error:
            raise RowProblem from error

    def _split(self, text: str) -> list[str]:
        try:
            rows = list(csv.reader(io.StringIO(text, newline="\n"), delimiter=self._delimiter, strict=True))
        except csv.Error as error:
            cause = next((ours for theirs, ours in _CAUSES.items() if str(error).startswith(theirs)), str(error))
            raise RowProblem(f"not valid CSV: {cause}") from None
        assert len(rows) == 1, f"expected one CSV row, got {rows!r:.200}"
        return rows[0]

    def read_one(self, row: bytes) -> Sequence[Any]:
        values: list[Any] = self._split(self.decode(row))
        if len(values) != len(self._columns):
            raise RowProblem(f"the row has {len(values)} values, expected {len(self._columns)}: {list(self._columns)}")
        for index, name, convert in self._types:
            try:
                values[index] = convert(values[index])
            except FailedException:
                raise
            except Exception as error:
                how = getattr(convert, "__name__", repr(convert))
                got = f"column {name!r} is {values[index]!r:.100}"
                raise RowProblem(f"{got}, which {how} does not take: {type(error).__name__}: {error}") from None
        return values if self._taken is None else [values[index] for index in self._taken]
