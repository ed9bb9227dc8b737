"""The coordinator and the emitters of a streaming reader: batches are ranges of its offsets."""

from __future__ import annotations

import inspect
import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pyspark.sql.datasource import SimpleDataSourceStreamReader

from stormline.runtime.tuples.column_checksum import ColumnChecksum
from stormline.spouts.checksum import rows_checksum
from stormline.spouts.errors import SourceChanged, SourceUnusable
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.contracts import Collector, IPartitionedCoordinator, IPartitionedEmitter, Metadata
from stormline.topology.errors import CorruptData, FailedException, shown
from stormline.topology.serialization import PLAIN

Offset = Mapping[str, Any]


class _Batch(NamedTuple):
    """What is stored of a batch: its offsets, and among how many tasks its partitions are shared."""

    start: Offset
    end: Offset
    shares: int

    @classmethod
    def from_metadata(cls, metadata: Any) -> _Batch:
        if type(metadata) is list and [type(part) for part in metadata] == [dict, dict, int] and metadata[2] > 0:
            return cls(*metadata)
        raise CorruptData(
            f"the stored batch of a DataSourceTransactionalSpout is {shown(metadata)}, expected [start, end, shares]; "
            "restore the state from a backup, or begin anew under another topology id"
        )


class _Share(NamedTuple):
    """What is stored of one share of a batch: where the batch ends, its rows, and their checksum."""

    end: Offset
    rows: int
    checksum: int

    @classmethod
    def from_metadata(cls, metadata: Any) -> _Share:
        if type(metadata) is list and [type(part) for part in metadata] == [dict, int, int]:
            return cls(*metadata)
        raise CorruptData(
            f"a stored share of a DataSourceTransactionalSpout is {shown(metadata)}, expected [end, rows, checksum]; "
            "restore the state from a backup, or begin anew under another topology id"
        )


class ReaderCoordinator(IPartitionedCoordinator):
    """Asks the reader how far it goes, and tells it what is committed."""

    def __init__(self, reader: Any, who: str, tasks: int) -> None:
        self._reader = reader
        self._who = who
        self._tasks = tasks
        self._simple = isinstance(reader, SimpleDataSourceStreamReader)
        self._shares = 0
        self._initial: Offset | None = None
        self._at: Offset | None = None
        self._found: Offset | None = None

    def resume_partitions(self, described: Metadata) -> None:
        """Go on where the last batch ended."""
        self._go_on_after(described)

    def is_ready_after(self, positions: Mapping[int, Metadata], batches_ahead: int) -> bool:
        """Return whether the reader goes on beyond the last batch that has begun.

        Raises:
            SourceUnusable: its offsets are none.
            SourceChanged: it goes less far than it did.
        """
        if self._found is None:
            start = self._start()
            end = self._read_to(start) if self._simple else self._latest(start)
            if end == start:
                return False
            self._check_forward(start, end)
            self._found = end
        return True

    def describe_partitions(self, described: Metadata) -> Metadata:
        """Return the offsets of the next batch.

        Raises:
            FailedException: there is nothing more.
        """
        if described is not None and described[1] != self._at:
            self._go_on_after(described)
        if not self.is_ready_after({}, 0):
            raise FailedException(f"{self._who} has no more rows now")
        start, end = self._start(), self._found
        self._shares = max(self._shares, 1 if self._simple else self._tasks)
        self._at, self._found = end, None
        return [start, end, self._shares]

    def num_partitions(self) -> int:
        """Return among how many tasks the partitions of the batch at hand are shared."""
        return self._shares

    def positions_committed(self, positions: Mapping[int, Metadata]) -> None:
        """Tell the reader that all up to there is committed."""
        if positions.get(0) is not None:
            self._reader.commit(_Share.from_metadata(positions[0]).end)

    def close(self) -> None:
        """Let the reader stop; simple ones have nothing to stop."""
        getattr(self._reader, "stop", lambda: None)()

    def _go_on_after(self, described: Metadata) -> None:
        self._found = None
        if described is not None:
            batch = _Batch.from_metadata(described)
            self._at, self._shares = batch.end, max(self._shares, batch.shares)

    def _start(self) -> Offset:
        if self._at is not None:
            return self._at
        if self._initial is None:
            self._initial = self._offset("initialOffset()", self._reader.initialOffset())
        return self._initial

    def _latest(self, start: Offset) -> Offset:
        if not inspect.signature(self._reader.latestOffset).parameters:  # before PySpark 4.2
            return self._offset("latestOffset()", self._reader.latestOffset())
        limit = self._reader.getDefaultReadLimit()
        return self._offset("latestOffset(start, limit)", self._reader.latestOffset(dict(start), limit))

    def _read_to(self, start: Offset) -> Offset:
        answer = self._reader.read(dict(start))
        if not isinstance(answer, (tuple, list)) or len(answer) != 2:
            raise SourceUnusable(
                f"{self._who}: read({start}) returned {shown(answer)}, expected (iterator, end offset)"
            )
        rows, told = answer
        end = self._offset("read(start)", told)
        if end == start and next(iter(rows), None) is not None:
            raise SourceUnusable(
                f"{self._who}: read({start}) gave rows, and the end offset {end}, which is where it began: the rows "
                "would come again for ever; return where to go on after them"
            )
        getattr(rows, "close", lambda: None)()
        return end

    def _offset(self, what: str, offset: Any) -> Offset:
        """Return an offset as Spark would keep it, as JSON."""
        try:
            kept = json.loads(json.dumps(offset)) if isinstance(offset, dict) else None
        except (TypeError, ValueError):
            kept = None
        if kept is None:
            raise SourceUnusable(
                f"{self._who}: {what} of {type(self._reader).__name__} gave the offset {shown(offset)}, expected a "
                "dict of texts, whole numbers, booleans, and dicts of those"
            )
        return dict(kept)

    def _check_forward(self, start: Offset, end: Offset) -> None:
        for name in _back(start, end):
            raise SourceChanged(
                f"{self._who}: {type(self._reader).__name__} goes up to {end} now, and was read up to {dict(start)}: "
                f"{name!r} went back, so its source was removed or made anew, or it counts from the start of the "
                "process; let it find out how far its source goes, or begin anew under another topology id"
            )


def _back(start: Offset, end: Offset) -> Iterator[str]:
    """Give the names of the numbers that are less than they were, also within dicts, as of topics and partitions."""
    for name, before in start.items():
        after = end.get(name)
        if type(before) is type(after) is int and after < before:
            yield name
        elif type(before) is type(after) is dict:
            yield from (f"{name}.{inner}" for inner in _back(before, after))


class ReaderEmitter(IPartitionedEmitter):
    """Reads every n-th of the reader's partitions of a batch, of n shares; a replay must give what it gave."""

    def __init__(self, reader: Any, who: str, width: int) -> None:
        self._reader = reader
        self._who = who
        self._width = width
        self._simple = isinstance(reader, SimpleDataSourceStreamReader)
        self._batch: _Batch | None = None

    def begin_batch(
        self, described: Metadata, positions: Mapping[int, Metadata], stored: Mapping[int, Metadata]
    ) -> None:
        """Take in the offsets."""
        self._batch = _Batch.from_metadata(described)

    def emit_partition_batch_new(
        self, attempt: TransactionAttempt, collector: Collector, partition: int, last_metadata: Metadata
    ) -> Metadata:
        """Emit a share for the first time."""
        assert self._batch is not None
        read = _Read(self._given(partition, self._batch), self._who, self._width)
        read.emit(attempt, collector)
        return [dict(self._batch.end), read.count, read.checksum()]

    def emit_partition_batch(
        self, attempt: TransactionAttempt, collector: Collector, partition: int, metadata: Metadata
    ) -> None:
        """Emit a share again.

        Raises:
            SourceChanged: the reader gives something else now.
        """
        assert self._batch is not None
        stored = _Share.from_metadata(metadata)
        read = _Read(self._given(partition, self._batch), self._who, self._width)
        where = f"between the offsets {dict(self._batch.start)} and {dict(self._batch.end)}"
        if read.count != stored.rows:
            raise SourceChanged(
                f"{self._who} gave {stored.rows} rows {where} in share {partition}, and now gives {read.count}; "
                f"{SourceChanged.REMEDY}"
            )
        if read.checksum() != stored.checksum:
            raise SourceChanged(
                f"{self._who} gives other rows {where} in share {partition} than the {stored.rows} that it gave; "
                f"{SourceChanged.REMEDY}"
            )
        read.emit(attempt, collector)

    def close(self) -> None:
        """Let the reader stop."""
        getattr(self._reader, "stop", lambda: None)()

    def _given(self, partition: int, batch: _Batch) -> Iterator[Any]:
        start, end = dict(batch.start), dict(batch.end)
        if self._simple:
            yield from self._reader.readBetweenOffsets(start, end) if partition == 0 else ()
            return
        for part in list(self._reader.partitions(start, end))[partition :: batch.shares]:
            yield from self._reader.read(part)


class _Read:
    """Rows and record batches, all of a share: they are emitted once they are known to be what they should be."""

    def __init__(self, given: Iterator[Any], who: str, width: int) -> None:
        self.rows: list[list[Any]] = []
        self.batches: list[Any] = []
        self.count = 0
        for one in given:
            if hasattr(one, "num_rows"):
                self.batches.append(one)
                self.count += int(one.num_rows)
                continue
            if not isinstance(one, (tuple, list)) or len(one) != width:
                raise SourceUnusable(
                    f"{who}: its reader gave {shown(one)}, expected a tuple of {width} values, one for each field of "
                    "the schema, or a pyarrow.RecordBatch"
                )
            self.rows.append(list(one))
            self.count += 1

    def checksum(self) -> int:
        """Return the checksum of all values in their order; that of record batches whatever their sizes."""
        columns: list[ColumnChecksum] = []
        for batch in self.batches:
            columns = columns or [ColumnChecksum(PLAIN) for _ in batch.columns]
            for checksum, column in zip(columns, batch.columns, strict=True):
                checksum.add(column)
        return zlib.crc32(PLAIN.pack([rows_checksum(self.rows), [checksum.parts() for checksum in columns]]))

    def emit(self, attempt: TransactionAttempt, collector: Collector) -> None:
        """Emit all."""
        for batch in self.batches:
            collector.emit_batch(batch)
        collector.emit_all([[attempt, *values] for values in self.rows])
