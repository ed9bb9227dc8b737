"""FileEmitter: reads the pieces of a batch that fall to one task."""

from __future__ import annotations

import logging
import os
import zlib
from collections.abc import Sequence

from stormline.spouts.file.csv_columns import CsvColumns
from stormline.spouts.file.errors import BadLine, FileChanged
from stormline.spouts.file.formats import columns_reader, rows_of
from stormline.spouts.file.metadata import Piece, columns_of, pieces_of
from stormline.spouts.file.opening import open_rows
from stormline.spouts.file.parquet import ParquetReader, values_of
from stormline.spouts.file.rows import RowFormat, RowProblem
from stormline.spouts.file.settings import FileSettings
from stormline.topology.arrow import type_problem
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.contracts import Collector, ITransactionalEmitter, Metadata
from stormline.topology.errors import CorruptData

log = logging.getLogger("stormline")


class FileEmitter(ITransactionalEmitter):
    """Task i of t emits the pieces i, i+t, i+2t, …, each only if its bytes are those that were planned.

    Where `columnar`, as record batches, if the format and the rows allow it: the values are the same.
    """

    def __init__(self, settings: FileSettings, task: int, tasks: int, columnar: bool = False) -> None:
        self._settings = settings
        self._task = task
        self._tasks = tasks
        self._columnar = columnar
        self._parquet = ParquetReader()
        self._columns: Sequence[str] | None = None
        self._rows: RowFormat | None = None
        self._csv: CsvColumns | None = None

    def emit_batch(self, attempt: TransactionAttempt, metadata: Metadata, collector: Collector) -> None:
        """Emit [attempt, *values] of each row of this task's pieces.

        Raises:
            FileVanished, FileChanged: a file is not what it was when the batch was planned.
            BadLine: a row cannot be read, unless such rows are to be skipped.
        CorruptData: what is stored of the batch is not what was planned.
        """
        settings = self._settings
        pieces = pieces_of(metadata, settings.format, self._task, self._tasks)
        columns = columns_of(metadata)
        if settings.format == "parquet":
            self._emit_parquet(attempt, pieces, settings.fields or columns or (), collector)
            return
        if self._rows is None or columns != self._columns:
            self._columns, self._rows = columns, rows_of(settings, columns)
            self._csv = columns_reader(settings, columns) if self._columnar else None
        for piece in pieces:
            data = read_piece(piece)
            table = None if self._csv is None else self._csv.read(data, piece.rows)
            if table is None:
                _emit_piece(attempt, piece, data, self._rows, collector, settings.skip_bad)
            else:
                collector.emit_batch(table)

    def _emit_parquet(
        self, attempt: TransactionAttempt, pieces: Sequence[Piece], names: Sequence[str], collector: Collector
    ) -> None:
        for piece in pieces:
            for table in self._parquet.read_tables(piece, names):
                if self._columnar and not any(type_problem(kind) for kind in table.schema.types):
                    collector.emit_batch(table)
                    continue
                for values in values_of(table, names, piece.path):
                    collector.emit([attempt, *values])


def read_piece(piece: Piece) -> bytes:
    """Return the bytes of a piece; raise `FileVanished` or `FileChanged` where they are not what they were."""
    with open_rows(piece.path, piece.size) as file:
        size = os.fstat(file.fileno()).st_size
        if size != piece.size:
            raise FileChanged.size(piece.path, piece.size, size)
        file.seek(piece.start)
        data = file.read(piece.end - piece.start)
    crc = zlib.crc32(data, piece.crc_before)
    if crc != piece.crc_after:
        where = f"the range of bytes {piece.start} to {piece.end}, from line {piece.line} on,"
        raise FileChanged.content(piece.path, where, piece.crc_after, crc)
    return data


def _emit_piece(
    attempt: TransactionAttempt, piece: Piece, data: bytes, rows: RowFormat, collector: Collector, skip_bad: bool
) -> None:
    """Emit a piece's rows: at full speed up to a bad one, then one by one for a while, then at full speed again."""
    emit = collector.emit
    boundaries = rows.boundaries
    offset = emitted = 0
    bad: list[tuple[int, str]] = []
    counted_to, line = 0, piece.line
    one_by_one = 1
    while offset < len(data):
        whole = 0
        try:
            for values in rows.read(data[offset:] if offset else data):
                emit([attempt, *values])
                whole += 1
            emitted += whole
            break
        except RowProblem:
            emitted += whole
        offset, _ = boundaries.after_rows(data, offset, whole, True)
        for _ in range(one_by_one):
            offset, _ = boundaries.after_blanks(data, offset, True)
            if offset == len(data):
                break
            end, _ = boundaries.after_rows(data, offset, 1, True)
            try:
                values = rows.read_one(data[offset:end])
            except RowProblem as problem:
                line += data.count(b"\n", counted_to, offset)
                counted_to = offset
                if not skip_bad:
                    raise BadLine.at(piece.path, line, str(problem)) from problem.__cause__
                bad.append((line, str(problem)))
            else:
                emit([attempt, *values])
                emitted += 1
            offset = end
        one_by_one *= 4
    if emitted + len(bad) != piece.rows:
        raise CorruptData(
            f"{piece.path}:{piece.line}: the stored batch has {piece.rows} rows from here on, and the file, which has "
            f"not changed, has {emitted} and {len(bad)} bad ones; restore the state from a backup, or begin anew under "
            "another topology id"
        )
    if bad:
        log.warning(
            "%s: left out %d of the %d rows from line %d on; the first: line %d: %s",
            piece.path,
            len(bad),
            piece.rows,
            piece.line,
            *bad[0],
        )
