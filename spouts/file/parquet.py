"""ParquetRanges and ParquetReader: Parquet files, by pyarrow (pip install stormline[parquet])."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from stormline.spouts.file.errors import FileChanged, UnusableFile
from stormline.spouts.file.layout import Opened
from stormline.spouts.file.metadata import Piece, Position
from stormline.spouts.file.opening import open_rows
from stormline.topology.columns import in_microseconds
from stormline.topology.errors import MissingExtra

_MAGIC = b"PAR1"


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra.of("parquet", "format='parquet'") from None
    return pyarrow


def _footer_crc(file: BinaryIO, path: str, size: int) -> int:
    """Return the checksum of the footer: it holds the place, size and statistics of every column chunk."""
    file.seek(max(size - 8, 0))
    tail = file.read(8)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != _MAGIC or length + 12 > size:
        raise UnusableFile(f"file {path!r} is not a whole Parquet file: it does not end with a footer")
    file.seek(size - 8 - length)
    return zlib.crc32(file.read(length))


def _open(pa: Any, file: BinaryIO, path: str) -> Any:
    try:
        return pa.parquet.ParquetFile(file)
    except (pa.ArrowException, OSError, ValueError) as error:  # a name that is no UTF-8 is a ValueError
        raise UnusableFile(f"file {path!r} cannot be read as Parquet: {error}") from None


class ParquetRanges:
    """Cuts Parquet files into ranges of rows; a file is known by its size and its footer's checksum.

    A checksum of a range of rows would mean decoding it in the driver; rewritten data with the same size and the same
    places, sizes and statistics of all column chunks is the one change that is not noticed.
    """

    def __init__(self) -> None:
        self._counted: tuple[Any, int] = (None, 0)

    def begin(self, path: str) -> Opened:
        pa = _pyarrow()
        with open_rows(path) as file:
            found = os.fstat(file.fileno())
            crc = _footer_crc(file, path, found.st_size)
            names = list(_open(pa, file, path).schema_arrow.names)
        return Opened(Position(path, found.st_size, found.st_mtime_ns, 0, 1, crc), names)

    def check(self, at: Position, *, resuming: bool) -> Position:
        with _same_file(at.path, at.size, at.crc) as file:
            return at._replace(mtime_ns=os.fstat(file.fileno()).st_mtime_ns)

    def _rows_of(self, at: Position) -> int:
        file_id = (at.path, at.size, at.crc)
        if self._counted[0] != file_id:
            with _same_file(*file_id) as file:
                self._counted = (file_id, int(_open(_pyarrow(), file, at.path).metadata.num_rows))
        return self._counted[1]

    def take(self, at: Position, rows: int, rows_per_piece: int) -> tuple[Position, list[Piece]]:
        at = self.check(at, resuming=False)
        stop = min(at.offset + rows, self._rows_of(at))
        pieces = []
        for start in range(at.offset, stop, rows_per_piece):
            end = min(start + rows_per_piece, stop)
            pieces.append(Piece(at.path, at.size, start, end, start + 1, end - start, 0, at.crc))
        return at._replace(offset=stop, line=stop + 1), pieces

    def is_at_end(self, at: Position) -> bool:
        return at.offset >= self._rows_of(at)


def _same_file(path: str, size: int, crc: int) -> BinaryIO:
    file = open_rows(path, size)
    try:
        found = os.fstat(file.fileno()).st_size
        if found != size:
            raise FileChanged.size(path, size, found)
        footer = _footer_crc(file, path, size)
        if footer != crc:
            raise FileChanged.content(path, "the footer", crc, footer)
    except BaseException:
        file.close()
        raise
    return file


class ParquetReader:
    """Reads pieces, one row group at a time; keeps the last row group, as the next batch often begins in it.

    A task that reads a small range decodes the whole row group around it, so `rows_per_batch` should be near the
    size of a row group, or above.
    """

    def __init__(self) -> None:
        self._kept: tuple[Any, Any] = (None, None)

    def read_tables(self, piece: Piece, columns: Sequence[str]) -> Iterator[Any]:
        """Give the rows of the piece as tables of `columns`, one for each row group."""
        pa = _pyarrow()
        with _same_file(piece.path, piece.size, piece.crc_after) as file:
            parquet = _open(pa, file, piece.path)
            first = 0
            for group in range(parquet.metadata.num_row_groups):
                rows = parquet.metadata.row_group(group).num_rows
                start, end = max(piece.start, first), min(piece.end, first + rows)
                if start < end:
                    key = (piece.path, piece.size, piece.crc_after, group, tuple(columns))
                    if self._kept[0] != key:
                        self._kept = (key, self._read_group(pa, parquet, piece.path, group, columns))
                    yield self._kept[1].slice(start - first, end - start)
                first += rows

    @staticmethod
    def _read_group(pa: Any, parquet: Any, path: str, group: int, columns: Sequence[str]) -> Any:
        try:
            table = parquet.read_row_group(group, columns=list(columns))
            table.validate(full=True)
            for index, field in enumerate(table.schema):
                coarser = in_microseconds(field.type)
                if coarser is not None:
                    table = table.set_column(index, field.name, table.column(index).cast(coarser))
        except (pa.ArrowException, OSError, ValueError) as error:
            raise UnusableFile(f"file {path!r}, row group {group}, cannot be read: {error}") from None
        return table


def values_of(table: Any, columns: Sequence[str], path: str) -> Iterator[Sequence[Any]]:
    """Give the values of `columns` of each row of a table, which came out of a file."""
    return zip(*(_values(table, name, path) for name in columns), strict=True)


def _values(table: Any, name: str, path: str) -> list[Any]:
    try:
        values: list[Any] = table.column(name).to_pylist()
    except (ValueError, OverflowError, LookupError) as error:
        raise UnusableFile(
            f"file {path!r}, column {name!r}, holds what no value of Python's can ({error}); leave it out of fields, "
            "or let a bolt take it that takes record batches"
        ) from None
    return values
