"""Spouts whose rows stand in a dict of the driver process; for tests, and for first steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stormline.topology.attempt import TransactionAttempt
from stormline.topology.context import TopologyContext
from stormline.topology.contracts import (
    Collector,
    Conf,
    IOpaqueCoordinator,
    IOpaqueEmitter,
    IOpaquePartitionedTransactionalSpout,
    IPartitionedCoordinator,
    IPartitionedEmitter,
    IPartitionedTransactionalSpout,
    Metadata,
)
from stormline.topology.errors import CorruptData, InvalidComponent, InvalidConfig, InvalidStream, StormlineError, shown
from stormline.topology.fields import Fields
from stormline.topology.streams import OutputFieldsDeclarer

Rows = list[Any]
ATTEMPT_FIELD = "tx"


class RowsVanished(StormlineError):
    """Rows that a stored batch consists of are no longer there, so it cannot be emitted again."""


class _Memory:
    """Rows by partition. Rows appended, and partitions added, while the topology runs are seen by later batches.

    Metadata of a partition is [first row, end row).
    """

    def __init__(self, partitions: dict[int, Rows], fields: Sequence[str], take_per_batch: int) -> None:
        if not isinstance(partitions, dict):
            raise InvalidComponent(
                f"partitions is a {type(partitions).__name__}, expected a dict of partition → list of rows"
            )
        if not isinstance(take_per_batch, int) or isinstance(take_per_batch, bool) or take_per_batch < 1:
            raise InvalidConfig(f"take_per_batch is {take_per_batch!r}, expected a whole number of at least 1")
        if isinstance(fields, str):
            raise InvalidStream(f"fields of a memory spout is the text {fields!r}, expected Fields({fields!r}, …)")
        self.partitions = partitions
        self.fields = Fields(*fields)
        if ATTEMPT_FIELD in self.fields:
            raise InvalidStream(
                f"fields of a memory spout are {self.fields.to_list()}; the spout itself puts {ATTEMPT_FIELD!r}, "
                "the attempt, first: leave it out"
            )
        self.take_per_batch = take_per_batch
        self.disabled: set[int] = set()
        self.count()

    def count(self) -> int:
        partitions = dict(self.partitions)  # the user's program may add one meanwhile
        for partition, rows in partitions.items():
            if not isinstance(partition, int) or isinstance(partition, bool) or partition < 0:
                raise InvalidComponent(
                    f"partition {partition!r} of a memory spout: expected a whole number from 0 for each partition"
                )
            if not isinstance(rows, (list, tuple)):
                raise InvalidComponent(
                    f"partition {partition} of a memory spout is a {type(rows).__name__}, expected a list of rows"
                )
        return max(partitions, default=-1) + 1

    def end_of(self, metadata: Metadata) -> int:
        if metadata is None:
            return 0
        if type(metadata) is list and len(metadata) == 2 and all(type(n) is int for n in metadata):
            first, end = metadata
            if 0 <= first <= end:
                return int(end)
        raise CorruptData(f"stored metadata of a memory spout is {shown(metadata)}, expected [first row, end row]")

    def has_rows_after(self, positions: Mapping[int, Metadata], batches_ahead: int) -> bool:
        ahead = batches_ahead * self.take_per_batch
        return any(
            len(rows) > self.end_of(positions.get(partition)) + ahead
            for partition, rows in list(self.partitions.items())
            if partition not in self.disabled
        )

    def next_range(self, partition: int, last: Metadata) -> list[int]:
        start = self.end_of(last)
        return [start, max(start, min(start + self.take_per_batch, len(self.partitions.get(partition, ()))))]

    def emit(self, attempt: TransactionAttempt, collector: Collector, partition: int, metadata: list[int]) -> None:
        first, end = metadata
        rows = self.partitions.get(partition, [])[first:end]
        if len(rows) < end - first:
            raise RowsVanished(
                f"batch {attempt} has rows {first} to {end - 1} of partition {partition} of a memory spout, which now "
                f"holds {len(self.partitions.get(partition, []))} rows; give the spout all rows it had"
            )
        for row in rows:
            values = row if isinstance(row, (list, tuple)) else (row,)
            collector.emit([attempt, *values])


class _MemoryCoordinator(IPartitionedCoordinator, IOpaqueCoordinator):
    def __init__(self, memory: _Memory) -> None:
        self._memory = memory

    def num_partitions(self) -> int:
        return self._memory.count()

    def is_ready_after(self, positions: Mapping[int, Metadata], batches_ahead: int) -> bool:
        """Asked instead of `is_ready`: whether rows are left after these positions and that many more batches."""
        return self._memory.has_rows_after(positions, batches_ahead)


class _MemoryEmitter(IPartitionedEmitter):
    def __init__(self, memory: _Memory) -> None:
        self._memory = memory

    def emit_partition_batch_new(
        self, attempt: TransactionAttempt, collector: Collector, partition: int, last_metadata: Metadata
    ) -> Metadata:
        metadata = self._memory.next_range(partition, last_metadata)
        self._memory.emit(attempt, collector, partition, metadata)
        return metadata

    def emit_partition_batch(
        self, attempt: TransactionAttempt, collector: Collector, partition: int, metadata: Metadata
    ) -> None:
        self._memory.end_of(metadata)
        self._memory.emit(attempt, collector, partition, metadata)


class _OpaqueMemoryEmitter(IOpaqueEmitter):
    def __init__(self, memory: _Memory) -> None:
        self._memory = memory

    def num_partitions(self) -> int:
        return self._memory.count()

    def emit_partition_batch(
        self, attempt: TransactionAttempt, collector: Collector, partition: int, last_metadata: Metadata
    ) -> Metadata:
        if partition in self._memory.disabled:
            return None
        metadata = self._memory.next_range(partition, last_metadata)
        self._memory.emit(attempt, collector, partition, metadata)
        return metadata


class MemoryTransactionalSpout(IPartitionedTransactionalSpout):
    """Serves rows of the driver's memory, and can replay any batch; for tests, and for first steps.

    When nothing is left the spout is not ready, so there are no endless empty batches (Storm 1.2.4 has them). Rows
    appended, and partitions added, while the topology runs are seen by later batches. Its emitters run in the driver
    process, where the rows are. Storm 1.2.4: MemoryTransactionalSpout.

    Args:
        partitions (dict[int, Rows]): rows of each partition, by its number from 0. A row is a list or tuple of values
            for `fields`, or a single value.
        fields (Sequence[str]): names of the fields; the attempt, which comes before them as "tx", is put there by the
            spout.
        take_per_batch (int): most rows of one partition in one batch.

    Raises:
        InvalidComponent: `partitions` is no dict of lists of rows.
        InvalidConfig: `take_per_batch` is no whole number of at least 1.
        InvalidStream: `fields` are no distinct names, or "tx" is one of them.
    """

    def __init__(self, partitions: dict[int, Rows], fields: Sequence[str], take_per_batch: int) -> None:
        self._memory = _Memory(partitions, fields, take_per_batch)

    def get_coordinator(self, conf: Conf, context: TopologyContext) -> IPartitionedCoordinator:
        """Return the coordinator."""
        return _MemoryCoordinator(self._memory)

    def get_emitter(self, conf: Conf, context: TopologyContext) -> IPartitionedEmitter:
        """Return the emitter of one task."""
        return _MemoryEmitter(self._memory)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare the attempt and `fields`."""
        declarer.declare(Fields(ATTEMPT_FIELD, *self._memory.fields))


class OpaqueMemoryTransactionalSpout(IOpaquePartitionedTransactionalSpout):
    """As `MemoryTransactionalSpout`, but a partition can be disabled: it gives nothing then, not even in a replay.

    Storm 1.2.4: OpaqueMemoryTransactionalSpout.

    Args:
        partitions (dict[int, Rows]): rows of each partition, by its number from 0. A row is a list or tuple of values
            for `fields`, or a single value.
        fields (Sequence[str]): names of the fields; the attempt, which comes before them as "tx", is put there by the
            spout.
        take_per_batch (int): most rows of one partition in one batch.

    Raises:
        InvalidComponent: `partitions` is no dict of lists of rows.
        InvalidConfig: `take_per_batch` is no whole number of at least 1.
        InvalidStream: `fields` are no distinct names, or "tx" is one of them.
    """

    def __init__(self, partitions: dict[int, Rows], fields: Sequence[str], take_per_batch: int) -> None:
        self._memory = _Memory(partitions, fields, take_per_batch)

    def set_disabled(self, partition: int, disabled: bool) -> None:
        """Make a partition unavailable, or available again; may be called while the topology runs.

        Args:
            partition (int): number of the partition.
            disabled (bool): whether it is unavailable from now on.
        """
        (self._memory.disabled.add if disabled else self._memory.disabled.discard)(partition)

    def get_coordinator(self, conf: Conf, context: TopologyContext) -> IOpaqueCoordinator:
        """Return the coordinator."""
        return _MemoryCoordinator(self._memory)

    def get_emitter(self, conf: Conf, context: TopologyContext) -> IOpaqueEmitter:
        """Return the emitter of one task."""
        return _OpaqueMemoryEmitter(self._memory)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare the attempt and `fields`."""
        declarer.declare(Fields(ATTEMPT_FIELD, *self._memory.fields))
