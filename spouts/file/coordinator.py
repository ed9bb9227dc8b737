"""FileCoordinator: plans every batch to the row, in the driver."""

from __future__ import annotations

from collections import deque
from typing import Any

from stormline.spouts.file.header import check_columns, same_columns
from stormline.spouts.file.layout import Columns, FileLayout
from stormline.spouts.file.lookout import Lookout
from stormline.spouts.file.metadata import PATHS_BYTES_MAX, PIECE_BYTES, Piece, Progress
from stormline.spouts.file.settings import FileSettings
from stormline.topology.contracts import ITransactionalCoordinator, Metadata
from stormline.topology.errors import FailedException


class FileCoordinator(ITransactionalCoordinator):
    """Takes the next `rows_per_batch` rows, file after file, and stores where they are.

    What it holds is a cache of the newest metadata: where it is handed other metadata, it goes on from there. Files are
    taken in the order of their paths; those that appear later come after all that were there. A batch of
    thousands of tiny files may end early, so that its metadata stays below about 300 KB.

    `resume` must be called before `is_ready` when transactions are stored, else `is_ready` would tell what it
    would tell at the very start; `initialize_transaction` is right in any case, and raises `FailedException` (ask
    again later) when nothing is left.
    """

    def __init__(self, settings: FileSettings, layout: FileLayout, tasks: int, declared: Columns | None = None) -> None:
        self._settings = settings
        self._declared = declared
        self._layout = layout
        self._rows_per_piece = -(-settings.rows_per_batch // tasks)
        self._queue: deque[str] = deque()
        self._lookout = Lookout(settings.paths)
        self._progress = Progress(settings.format)
        self._stored: Metadata = None
        self._go_on_after(None)

    def resume(self, prev_metadata: Metadata) -> None:
        """Go on after the batch that `prev_metadata` was stored for.

        Raises:
            FileMissing: a path without wildcards, not read yet, leads nowhere.
            FileVanished, FileChanged: the file that is being read is not the one it was.
        """
        self._go_on_after(prev_metadata)
        if self._progress.at is not None:
            self._progress.at = self._layout.check(self._progress.at, resuming=True)
        self._look()

    def is_ready(self) -> bool:
        """Return whether there is a row to read; the files are looked up again when all known ones are read."""
        progress = self._progress
        while True:
            if progress.at is None and not self._begin_next():
                return False
            assert progress.at is not None
            if not self._layout.is_at_end(progress.at):
                return True
            self._end_file()

    def initialize_transaction(self, txid: int, prev_metadata: Metadata) -> Metadata:
        """Return the pieces of the next `rows_per_batch` rows after those of `prev_metadata`, fewer at the end.

        Raises:
            FailedException: no row is left.
            FileVanished, FileChanged: the file that is being read is not the one it was.
        """
        if prev_metadata != self._stored:
            self._go_on_after(prev_metadata)
        try:
            pieces = self._take_batch()
        except BaseException:
            self._go_on_after(prev_metadata)  # what was taken until then is not stored anywhere
            raise
        if not pieces:
            raise FailedException(f"transaction {txid}: all rows of {list(self._settings.paths)} have been read")
        self._stored = self._progress.to_metadata(pieces)
        return self._stored

    def _take_batch(self) -> list[Piece]:
        pieces: list[Piece] = []
        rows = self._settings.rows_per_batch
        room = PATHS_BYTES_MAX
        while rows and room > 0 and self.is_ready():
            at = self._progress.at
            assert at is not None
            self._progress.at, more = self._layout.take(at, rows, self._rows_per_piece)
            pieces += more
            rows -= sum(piece.rows for piece in more)
            room -= len(at.path.encode()) + PIECE_BYTES * len(more)
        at = self._progress.at
        if at is not None and self._layout.is_at_end(at):
            self._end_file()
        return pieces

    def _go_on_after(self, metadata: Any) -> None:
        self._progress = Progress.from_metadata(metadata, self._settings.format)
        self._stored = metadata
        if self._declared is not None:
            self._check_columns(*self._declared)
        elif self._progress.columns is not None:
            check_columns(self._progress.columns, self._progress.columns_of, self._settings)
        self._queue.clear()
        self._lookout.may_look_at_once()

    def _begin_next(self) -> bool:
        """Begin the next file, if there is one."""
        if not self._queue:
            self._look()
        while self._queue:
            path = self._queue.popleft()
            try:
                opened = self._layout.begin(path)
            except FileNotFoundError:
                continue  # it was there a moment ago: the next look tells
            if opened.at.size == 0:
                continue
            if opened.columns is not None:
                self._check_columns(path, opened.columns)
            self._progress.at = opened.at
            return True
        return False

    def _end_file(self) -> None:
        at = self._progress.at
        assert at is not None
        self._progress.read.add([(at.path, at.size)])
        self._progress.at = None

    def _look(self) -> None:
        """Look for files that are not read yet."""
        at = self._progress.at
        found = self._lookout.look(self._progress.read, {} if at is None else {at.path: at.size})
        if found is not None:
            self._queue = deque(found)

    def _check_columns(self, path: str, columns: list[str]) -> None:
        progress = self._progress
        known = None if progress.columns is None else Columns(progress.columns_of, progress.columns)
        progress.columns_of, progress.columns = same_columns(known, Columns(path, columns), self._settings)
