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
from stormline.topology.errors import CorruptData, InvalidComponent, InvalidConfig
from stormline.topology.fields import Fields
from stormline.topology.streams import OutputFieldsDeclarer

Rows = list[Any]


class _Memory:
    """Rows by partition. Rows appended, and partitions added, while the topology runs are seen by later batches.

    Metadata of a partition is [first row, end row).
    """

    def __init__(self, partitions: dict[int, Rows], fields: Sequence[str], take_per_batch: int) -> None:
        if not isinstance(partitions, dict):
            raise InvalidComponent(f"partitions is a {type(partitions).__name__}, expected a dict of partition → list of rows")
        if not isinstance(take_per_batch, int) or isinstance(take_per_batch, bool) or take_per_batch < 1:
            raise InvalidConfig(f"take_per_batch is {take_per_batch!r}, expected a whole number of at least 1")
        self.partitions = partitions
        self.fields = Fields(*fields)
        self.take_per_batch = take_per_batch
        self.disabled: set[int] = set()

    def count(self) -> int:
        return max(self.partitions, default=-1) + 1

    def end_of(self, metadata: Metadata) -> int:
        if metadata is None:
            return 0
        if not (isinstance(metadata, list) and len(metadata) == 2 and all(isinstance(n, int) for n in metadata)):
            raise CorruptData(f"stored metadata of a memory spout is {metadata!r}, expected [first row, end row]")
        return int(metadata[1])

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
        for row in self.partitions.get(partition, [])[metadata[0] : metadata[1]]:
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
    """Serves `partitions` (partition number → list of rows) in batches of up to `take_per_batch` rows each.

    A row is a list or tuple of values for `fields`, or a single value. When nothing is left the spout is not
    ready, so there are no endless empty batches. Its emitters run in the driver process, where the rows are.
    """

    emits_on_driver = True

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
        declarer.declare(Fields("tx", *self._memory.fields))


class OpaqueMemoryTransactionalSpout(IOpaquePartitionedTransactionalSpout):
    """As `MemoryTransactionalSpout`, but a partition can be disabled: it gives nothing then."""

    emits_on_driver = True

    def __init__(self, partitions: dict[int, Rows], fields: Sequence[str], take_per_batch: int) -> None:
        self._memory = _Memory(partitions, fields, take_per_batch)

    def set_disabled(self, partition: int, disabled: bool) -> None:
        """Make a partition unavailable, or available again; may be called while the topology runs."""
        (self._memory.disabled.add if disabled else self._memory.disabled.discard)(partition)

    def get_coordinator(self, conf: Conf, context: TopologyContext) -> IOpaqueCoordinator:
        """Return the coordinator."""
        return _MemoryCoordinator(self._memory)

    def get_emitter(self, conf: Conf, context: TopologyContext) -> IOpaqueEmitter:
        """Return the emitter of one task."""
        return _OpaqueMemoryEmitter(self._memory)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare the attempt and `fields`."""
        declarer.declare(Fields("tx", *self._memory.fields))
