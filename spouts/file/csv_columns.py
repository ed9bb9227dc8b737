"""CsvColumns: CSV by pyarrow, where that gives the very values that the standard library's csv gives."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stormline.topology.arrow import pyarrow_for
from stormline.topology.columns import array_of
from stormline.topology.errors import ColumnCannotTravel, FailedException

_BYTES_MAX = 1 << 30


class CsvColumns:
    """Reads a piece as a table of all its rows, or says that it cannot: then `CsvRows` has to.

    It cannot where a row is a bad one (that module tells which, and why), where one is perhaps bad (a quote or a
    carriage return in an unusual place, a field too long), and where values have no place in a column. A value
    converted by `types` is converted once for each distinct text.
    """

    def __init__(
        self,
        encoding: str,
        delimiter: str,
        columns: Sequence[str],
        fields: Sequence[str] | None,
        types: Mapping[str, Callable[[str], Any]],
    ) -> None:
        self._encoding = encoding
        self._delimiter = delimiter
        self._width = len(columns)
        self._taken = [(name, columns.index(name)) for name in (columns if fields is None else fields)]
        self._types = types
        d = re.escape(delimiter.encode("ascii"))
        self._quoted = re.compile(rb'"(?<=[%b\n]")[^"]*(?:""[^"]*)*"(?=%b|\r?\n|\r?\Z)' % (d, d))

    def read(self, data: bytes, rows: int) -> Any:
        """Return a `pyarrow.Table` of the `rows` rows of `data`; None where the rows have to be read one by one."""
        if self._encoding not in ("utf-8", "ascii") or not self._is_plain(data):
            return None
        pa = pyarrow_for("FileTransactionalSpout, whose rows go to bolts that take record batches,")
        quoted = b'"' in data
        names = [str(i) for i in range(self._width)]
        try:
            table = self._parse(pa, data, names if quoted else [names[i] for _, i in self._taken])
            if table.num_rows != rows:
                return None
            if quoted and any(self._too_long(pa, column) for column in table.columns):
                return None
            arrays = [self._converted(pa, name, table.column(names[i])) for name, i in self._taken]
        except FailedException:
            raise
        except (pa.ArrowException, _Unconverted, ColumnCannotTravel):
            return None
        return pa.Table.from_arrays(arrays, names=[name for name, _ in self._taken])

    def _is_plain(self, data: bytes) -> bool:
        """Return whether both readers find the same rows and fields, if pyarrow finds rows at all."""
        if len(data) > _BYTES_MAX or b"\0" in data or data.startswith(codecs.BOM_UTF8):
            return False
        if b"\r" in data and data.count(b"\r") != data.count(b"\r\n") + data.endswith(b"\r"):
            return False
        if not data.isascii():
            try:
                data.decode(self._encoding)
            except UnicodeDecodeError:
                return False
        if b'"' in data:
            return b'"' not in self._quoted.sub(b"", b"\n" + data)
        return not _has_line_longer(data, csv.field_size_limit())

    def _parse(self, pa: Any, data: bytes, taken: Sequence[str]) -> Any:
        import pyarrow.csv as pacsv

        return pacsv.read_csv(
            pa.BufferReader(data),
            read_options=pacsv.ReadOptions(
                use_threads=False,
                block_size=len(data) + 1,
                column_names=[str(i) for i in range(self._width)],
                encoding="utf8",
            ),
            parse_options=pacsv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True),
            convert_options=pacsv.ConvertOptions(
                include_columns=list(dict.fromkeys(taken)),
                column_types={name: pa.string() for name in taken},
                strings_can_be_null=False,
            ),
        )

    @staticmethod
    def _too_long(pa: Any, column: Any) -> bool:
        longest = pa.compute.max(pa.compute.binary_length(column)).as_py()
        return longest is not None and longest > csv.field_size_limit()

    def _converted(self, pa: Any, name: str, column: Any) -> Any:
        convert = self._types.get(name)
        if convert is None:
            return column
        texts = column.combine_chunks().dictionary_encode()
        try:
            values = [convert(text) for text in texts.dictionary.to_pylist()]
        except FailedException:
            raise
        except Exception:
            raise _Unconverted from None
        return array_of(values).take(texts.indices)


class _Unconverted(Exception):
    """A text is not what its column's type takes."""


def _has_line_longer(data: bytes, limit: int) -> bool:
    """Return whether there may be a line of more than `limit` bytes: each such line holds a multiple of `limit`."""
    for place in range(limit, len(data), limit):
        start = data.rfind(b"\n", place - limit, place) + 1
        if not start or (data.find(b"\n", place, start + limit + 1) < 0 and len(data) - start > limit):
            return True
    return False
