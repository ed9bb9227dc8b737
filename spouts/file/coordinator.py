"""FileCoordinator: plans every batch to the row, in the driver."""

from __future__ import annotations

import logging
import time
from collections import deque
from typing import Any

from stormline.spouts.file.csv_rows import check_columns
from stormline.spouts.file.errors import BadHeader, FileMissing, FileVanished
from stormline.spouts.file.layout import Columns, FileLayout
from stormline.spouts.file.listing import list_files
from stormline.spouts.file.metadata import PATHS_BYTES_MAX, PIECE_BYTES, Piece, Progress
from stormline.spouts.file.settings import FileSettings
from stormline.topology.contracts import ITransactionalCoordinator, Metadata
from stormline.topology.errors import FailedException

log = logging.getLogger("stormline")

# A look at the files that took longer than this is not repeated before ten times as long has passed.
SLOW_LOOK_SECS = 0.05


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
        self._led_to: dict[str, str] = {}
        self._look_not_before = 0.0
        self._warned = False
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
        """Tell whether there is a row to read; the files are looked up again when all known ones are read."""
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
            check_columns(
                self._progress.columns, self._progress.columns_of, self._settings.fields, self._settings.types
            )
        self._queue.clear()
        self._look_not_before = 0.0

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
        """Look for files that are not read yet. An empty file is left for the next look: it may be filled yet."""
        begun = time.monotonic()
        if begun < self._look_not_before:
            return
        progress = self._progress
        listing = list_files(self._settings.paths)
        current = None if progress.at is None else progress.at.path
        for name, path in listing.missing.items():
            if path == current and progress.at is not None:
                raise FileVanished.at(path, progress.at.size)
            # A link may go as what it led to: its own path is none that a file was read by.
            if path not in progress.read and self._led_to.get(name, path) not in progress.read:
                raise FileMissing.at(path)
        self._led_to.update(listing.led_to)
        self._queue = deque(
            path
            for path, size in sorted(listing.sizes.items())
            if path != current and not progress.read.check(path, size) and size
        )
        if not listing.sizes and not self._warned:
            self._warned = True
            log.warning("no file matches %s yet", list(self._settings.paths))
        took = time.monotonic() - begun
        self._look_not_before = begun + 10 * took if took > SLOW_LOOK_SECS else 0.0

    def _check_columns(self, path: str, columns: list[str]) -> None:
        """Check the columns of a file against those of the first file that was read or declared."""
        progress, settings = self._progress, self._settings
        if progress.columns is None:
            check_columns(columns, path, settings.fields, settings.types)
            progress.columns_of, progress.columns = path, columns
        elif columns != progress.columns:
            raise BadHeader(
                f"file {path!r} has the columns {columns}, but {progress.columns_of!r} has {progress.columns}; all "
                "files of one spout must have the same columns in the same order, so correct the one that differs"
            )
