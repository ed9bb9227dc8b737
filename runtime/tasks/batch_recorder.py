"""Recorder: what an opaque spout's emitter emits to; it notes what defines the batch (law 2, sameness)."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from stormline.runtime.tasks.collector import TaskCollector
from stormline.runtime.tuples.column_checksum import ColumnChecksum
from stormline.runtime.tuples.columns import Columns, Row
from stormline.runtime.tuples.packing import unregistered_field
from stormline.topology.columns import array_of
from stormline.topology.errors import ColumnCannotTravel, MissingExtra, UnregisteredClass
from stormline.topology.grouping import DEFAULT_STREAM
from stormline.topology.serialization import Registry
from stormline.topology.storm_names import storm_names


@storm_names()
class Recorder:
    """Counts what one partition emits, with a checksum; passes on no more rows than `limit`.

    The checksum tells rows and their order apart, per stream for record batches; it does not depend on how a replay
    cuts them into batches, nor on which task a row is emitted to directly: task ids are others in a changed topology.
    """

    def __init__(self, collector: TaskCollector, registry: Registry, limit: int | None) -> None:
        self._collector = collector
        self._registry = registry
        self._limit = limit
        self._crc = 0
        self._crc_as_rows = 0
        self._columns: dict[str, list[ColumnChecksum]] = {}
        self._kept: dict[str, list[Row]] = {}  # of a frozen batch
        self._lock = threading.Lock()  # an emitter may emit from threads of its own
        self.rows = 0

    def emit(self, values: Sequence[Any], stream: Any = DEFAULT_STREAM) -> None:
        if isinstance(values, str):
            values, stream = self._collector.in_our_order(values, stream)
        if self._record(values, stream):
            self._collector.emit(values, stream)

    def emit_all(self, rows: list[list[Any]], stream: str = DEFAULT_STREAM) -> None:
        kept = [row for row in rows if self._record(row, stream)]
        self._collector.emit_all(kept, stream)

    def emit_batch(self, batch: Any, stream: str = DEFAULT_STREAM) -> None:
        for columns in self._collector.checked(batch, stream):
            with self._lock:
                kept = columns if self._limit is None else columns.slice(0, self._limit - self.rows)
                if len(kept):
                    self._record_columns(kept, stream)
            if len(kept):
                self._collector.emit_batch(kept.batch, stream)

    def emit_direct(self, task_id: int, values: Sequence[Any], stream: Any = DEFAULT_STREAM) -> None:
        if isinstance(values, str):
            values, stream = self._collector.in_our_order(values, stream)
        if self._record(values, stream, direct=True):
            self._collector.emit_direct(task_id, values, stream)

    def report_error(self, error: BaseException) -> None:
        self._collector.report_error(error)

    @property
    def checksum(self) -> int:
        """What identifies all tuples so far, in 32 bits."""
        return self._checksum(self._crc, self._columns) if self._columns else self._crc

    def _checksum(self, crc: int, of_streams: Mapping[str, Sequence[ColumnChecksum]]) -> int:
        parts = {stream: [column.parts() for column in columns] for stream, columns in sorted(of_streams.items())}
        return zlib.crc32(self._registry.pack([crc, parts]))

    def matches(self, rows: int, checksum: int) -> bool:
        """Return whether this is what was stored; also where the emitter emitted rows then, and batches now, or the
        other way round: another bolt that listens is enough for that."""
        if self.rows != rows:
            return False
        return checksum in (self.checksum, self._crc_as_rows) or checksum == self._crc_as_columns()

    def _crc_as_columns(self) -> int | None:
        """Return the checksum of the same rows emitted as record batches; None where they could not be."""
        if self._columns:
            return None
        try:
            return self._checksum(0, {stream: self._of_rows(rows) for stream, rows in self._kept.items()})
        except (ColumnCannotTravel, MissingExtra):
            return None

    def _of_rows(self, rows: list[Row]) -> list[ColumnChecksum]:
        checksums = []
        for i in range(1, len(rows[0])):
            checksum = ColumnChecksum(self._registry)
            checksum.add(array_of([row[i] for row in rows]))
            checksums.append(checksum)
        return checksums

    def _record(self, values: Sequence[Any], stream: str, direct: bool = False) -> bool:
        if self._limit is not None and self.rows >= self._limit:
            return False
        packed = self._packed(values, stream, direct)
        with self._lock:
            if self._limit is not None:
                if self.rows >= self._limit:
                    return False
                self._crc_as_rows = zlib.crc32(packed, self._crc_as_rows)
                self._kept.setdefault(stream, []).append([*values])
            self.rows += 1
            self._crc = zlib.crc32(packed, self._crc)
        return True

    def _packed(self, values: Sequence[Any], stream: str, direct: bool = False) -> bytes:
        try:
            return self._registry.pack([stream, direct, *values[1:]])
        except UnregisteredClass as error:
            planned = self._collector.planned
            declared = planned.component.streams.get(stream)
            names = dict(enumerate(declared.fields.to_list() if declared is not None else ()))
            fitting = {i: name for i, name in names.items() if 0 < i < len(values)}
            where = (planned.id, stream)
            raise unregistered_field(error, [values], fitting, self._registry.pack, where) from None

    def _record_columns(self, columns: Columns, stream: str) -> None:
        self.rows += len(columns)
        of_columns = self._columns.get(stream)
        if of_columns is None:
            of_columns = [ColumnChecksum(self._registry) for _ in range(columns.batch.num_columns)]
            self._columns[stream] = of_columns
        for checksum, column in zip(of_columns, columns.batch.columns, strict=True):
            checksum.add(column)
        if self._limit is not None:  # a frozen batch, which an emitter of rows may have given
            for rows in columns.rows_in_parts():
                for row in rows:
                    self._crc_as_rows = zlib.crc32(self._packed(row, stream), self._crc_as_rows)
