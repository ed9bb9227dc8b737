"""MergingEmitter: emits the rows of a batch of several files in the order of their times."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from stormline.spouts.file.emitter import read_piece
from stormline.spouts.file.errors import BadLine
from stormline.spouts.file.formats import rows_of
from stormline.spouts.file.merged_metadata import MergedPiece, merged_pieces_of
from stormline.spouts.file.metadata import columns_of
from stormline.spouts.file.order_key import Key, order_key
from stormline.spouts.file.rows import RowFormat, RowProblem, each_row
from stormline.spouts.file.settings import FileSettings
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.contracts import Collector, ITransactionalEmitter, Metadata
from stormline.topology.errors import CorruptData

log = logging.getLogger("stormline")


class MergingEmitter(ITransactionalEmitter):
    """Emits all rows of batch n in the task n mod t, of t tasks; the others emit nothing of it."""

    def __init__(self, settings: FileSettings, task: int, tasks: int) -> None:
        assert settings.order_by is not None
        self._settings = settings
        self._order_by = settings.order_by
        self._task = task
        self._tasks = tasks

    def emit_batch(self, attempt: TransactionAttempt, metadata: Metadata, collector: Collector) -> None:
        """Emit [attempt, *values] of each row, ordered by time, then by path, then by place in the file.

        Raises:
            FileVanished, FileChanged: a file is not what it was when the batch was planned.
            BadLine: a row cannot be read, or has no usable time, unless such rows are to be skipped.
            CorruptData: what is stored of the batch is not what was planned.
        """
        if attempt.transaction_id % self._tasks != self._task:
            return
        settings = self._settings
        pieces = merged_pieces_of(metadata, settings.format, self._order_by)
        columns = columns_of(metadata)
        names = list(settings.fields or columns or ())
        if self._order_by not in names:
            raise CorruptData(f"the stored batch has the columns {names}, without {self._order_by!r} to order by")
        rows = rows_of(settings, columns)
        found: list[tuple[Key, Sequence[Any]]] = []
        for piece in pieces:
            found += _rows_of(piece, rows, names.index(self._order_by), settings.skip_bad)
        found.sort(key=itemgetter(0))
        for _, values in found:
            collector.emit([attempt, *values])


def _rows_of(merged: MergedPiece, rows: RowFormat, index: int, skip_bad: bool) -> list[tuple[Key, Sequence[Any]]]:
    piece, taken_before, left, key = merged
    data = read_piece(piece)
    others = {*taken_before, *left}
    found: list[tuple[Key, Sequence[Any]]] = []
    bad: list[tuple[int, str]] = []
    count = begin = 0
    for ordinal, (end, values) in enumerate(each_row(data, rows)):
        count += 1
        problem = values if isinstance(values, RowProblem) else None
        if not isinstance(values, RowProblem):
            try:
                time = order_key(values[index])
                key = key if time is None else time[1]
            except RowProblem as error:
                problem = error
        if ordinal not in others:
            if not isinstance(values, RowProblem) and problem is None:
                found.append((key, values))
            else:
                start, _ = rows.boundaries.after_blanks(data, begin, True)
                line = piece.line + data.count(b"\n", 0, start)
                if not skip_bad:
                    raise BadLine.at(piece.path, line, str(problem))
                bad.append((line, str(problem)))
        begin = end
    if count != piece.rows:
        raise CorruptData(
            f"{piece.path}:{piece.line}: the stored batch has {piece.rows} rows from here on, and the file, which has "
            f"not changed, has {count}; restore the state from a backup, or begin anew under another topology id"
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
    return found
