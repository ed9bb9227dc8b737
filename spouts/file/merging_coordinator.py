"""MergingCoordinator: plans batches of the rows of files that are read side by side, in the order of their times."""

from __future__ import annotations

import heapq
import logging
from typing import Any

from stormline.spouts.file.byte_ranges import ByteRanges
from stormline.spouts.file.errors import LateRow, TooManyFiles
from stormline.spouts.file.formats import rows_of
from stormline.spouts.file.header import check_columns, same_columns
from stormline.spouts.file.lane import Lane, OrderField
from stormline.spouts.file.layout import Columns
from stormline.spouts.file.lookout import Lookout
from stormline.spouts.file.merged_metadata import MergedPiece, MergedProgress, OpenFile, to_bits
from stormline.spouts.file.metadata import PATHS_BYTES_MAX, PIECE_BYTES
from stormline.spouts.file.order_key import Key
from stormline.spouts.file.settings import FileSettings
from stormline.topology.contracts import ITransactionalCoordinator, Metadata
from stormline.topology.errors import FailedException

log = logging.getLogger("stormline")


def open_bytes(at: OpenFile) -> int:
    """Return what is stored, at most, of how far a file has been read."""
    return len(at.position.path.encode()) + 2 * PIECE_BYTES + len(to_bits(at.ahead))


class MergingCoordinator(ITransactionalCoordinator):
    """Takes the next `rows_per_batch` rows of all files, the earliest first, and stores where they are.

    So it reads every row, to know its time. Rows of the same time are taken in the order of their files' paths. New
    files are looked for before each batch. A file of which no row was taken yet is not stored; those of which some
    were, and are left, must fit into a znode together, so about a thousand may overlap in time.

    As with `FileCoordinator`, what it holds is a cache of the newest metadata.
    """

    def __init__(self, settings: FileSettings, layout: ByteRanges, declared: Columns | None = None) -> None:
        assert settings.order_by is not None
        self._settings = settings
        self._order_by = settings.order_by
        self._layout = layout
        self._declared = declared
        self._lookout = Lookout(settings.paths)
        self._go_on_after(None)

    def _go_on_after(self, metadata: Any) -> None:
        settings = self._settings
        self._progress = progress = MergedProgress.from_metadata(metadata, settings.format, self._order_by)
        self._stored = metadata
        self._field: OrderField | None = None
        self._lanes: dict[str, Lane] = {}
        self._begun = {at.position.path: at.position.size for at in progress.open}
        self._heads: list[tuple[Key, str]] = []
        self._looked = False
        if self._declared is not None:
            self._same_columns(self._declared)
        elif progress.columns is not None:
            check_columns(progress.columns, progress.columns_of, settings)
        self._lookout.may_look_at_once()

    def resume(self, prev_metadata: Metadata) -> None:
        """Go on after the batch that `prev_metadata` was stored for.

        Raises:
            FileMissing: a path without wildcards, not read yet, leads nowhere.
            FileVanished, FileChanged: a file of which some rows were read is not the one it was.
        """
        self._go_on_after(prev_metadata)
        progress = self._progress
        progress.open = [
            file._replace(position=self._layout.check(file.position, resuming=True)) for file in progress.open
        ]
        self._look()

    def is_ready(self) -> bool:
        """Return whether there is a row to read; new files are looked for once a batch, and while there is none."""
        if not self._looked or not self._heads:
            self._look()
        return bool(self._heads)

    def initialize_transaction(self, txid: int, prev_metadata: Metadata) -> Metadata:
        """Return where the next `rows_per_batch` rows are; fewer at the end, or where they are of very many files.

        Raises:
            FailedException: no row is left.
            LateRow: a row is too late, and such rows are not to be kept.
            FileVanished, FileChanged: a file that is being read is not the one it was.
        """
        if prev_metadata != self._stored:
            self._go_on_after(prev_metadata)
        try:
            pieces = self._take_batch(txid) if self.is_ready() else []
        except BaseException:
            self._go_on_after(prev_metadata)  # what was taken until then is not stored anywhere
            raise
        if not pieces:
            raise FailedException(f"transaction {txid}: all rows of {list(self._settings.paths)} have been read")
        self._stored = self._progress.to_metadata(pieces)
        return self._stored

    def _take_batch(self, txid: int) -> list[MergedPiece]:
        progress, lanes, heads = self._progress, self._lanes, self._heads
        room = PATHS_BYTES_MAX // 2
        touched: set[str] = set()
        ended: list[str] = []
        late: list[str] = []
        late_rows = 0
        for _ in range(self._settings.rows_per_batch):
            if not heads:
                break
            path = heads[0][1]
            lane = lanes[path]
            if path not in touched:
                if room <= 0:
                    break
                room -= self._bytes_of(path)
                touched.add(path)
            row = lane.take()
            if row.late:
                line = lane.line_of(row.ordinal)
                if not self._settings.keep_late:
                    raise LateRow.at(path, line, self._order_by, self._settings.order_window)
                late_rows += 1
                late = late or [f"{path}:{line}"]
            progress.newest = max(progress.newest, row.key)
            head = lane.head()
            if head is None:
                heapq.heappop(heads)
                ended.append(path)
            else:
                heapq.heapreplace(heads, (head, path))
        if late:
            log.warning(
                "transaction %d has %d rows that stood more than %d rows too late; the first: %s",
                txid,
                late_rows,
                self._settings.order_window,
                late[0],
            )
        pieces = [lanes[path].cut() for path in sorted(touched)]
        self._begun.update((path, lanes[path].at.position.size) for path in touched)
        for path in ended:
            self._end(path)
        progress.open = [lanes[path].at for path in self._begun]
        if sum(map(open_bytes, progress.open)) > PATHS_BYTES_MAX // 2:
            raise TooManyFiles(
                f"{len(self._begun)} files overlap in time: each transaction stores how far each has been read, and "
                "ZooKeeper takes 1 MB at most; join files, or begin anew without order_by under another topology id"
            )
        self._looked = False
        return pieces

    def _bytes_of(self, path: str) -> int:
        """Return what the rows of a file take in a batch's metadata, at most."""
        return len(path.encode()) + 2 * PIECE_BYTES + 2 * (self._settings.order_window // 8 + 16)

    def _end(self, path: str) -> None:
        at = self._lanes.pop(path).at.position
        self._begun.pop(path, None)
        self._progress.read.add([(path, at.size)])

    def _look(self) -> None:
        """Begin to read, side by side with the others, files that are new."""
        for at in self._progress.open:
            if at.position.path not in self._lanes:
                self._enter(at)
        found = self._lookout.look(self._progress.read, self._begun)
        self._looked = True
        if found is None:
            return
        gone = {
            path
            for path, lane in self._lanes.items()
            if path not in self._begun and found.get(path) != lane.at.position.size
        }
        for path in gone:
            del self._lanes[path]
        if gone:
            self._heads = [head for head in self._heads if head[1] not in gone]
            heapq.heapify(self._heads)
        for path in found:
            if path not in self._lanes:
                try:
                    self._begin(path)
                except FileNotFoundError:
                    continue  # it was there a moment ago: the next look tells

    def _begin(self, path: str) -> None:
        opened = self._layout.begin(path)
        if opened.at.size == 0:
            return
        if opened.columns is not None:
            self._same_columns(Columns(path, opened.columns))
        head = self._enter(OpenFile(opened.at))
        if head is not None and head < self._progress.newest:
            log.warning(
                "file %r begins before the %s of rows that were emitted already: its earlier rows come after them",
                path,
                self._order_by,
            )

    def _enter(self, at: OpenFile) -> Key | None:
        settings, path = self._settings, at.position.path
        if self._field is None:
            names = settings.fields or self._progress.columns or ()
            self._field = OrderField(self._order_by, list(names).index(self._order_by))
        rows = rows_of(settings, self._progress.columns)
        lane = Lane(self._layout, rows, self._field, at, settings.order_window)
        head = lane.head()
        self._lanes[path] = lane
        if head is None:
            self._end(path)
        else:
            heapq.heappush(self._heads, (head, path))
        return head

    def _same_columns(self, found: Columns) -> None:
        progress = self._progress
        known = None if progress.columns is None else Columns(progress.columns_of, progress.columns)
        progress.columns_of, progress.columns = same_columns(known, found, self._settings)
