"""Two spouts over the source: one that replays by metadata, one that takes whatever there is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stormline import (
    FailedException,
    Fields,
    IOpaquePartitionedTransactionalSpout,
    IPartitionedTransactionalSpout,
    TransactionAttempt,
)
from stormline.topology.contracts import (
    IOpaqueCoordinator,
    IOpaqueEmitter,
    IPartitionedCoordinator,
    IPartitionedEmitter,
)
from tests.chaos.numbers import key_of
from tests.chaos.source import Source, read_source

NUMBER_FIELDS = Fields("attempt", "number", "key")


def _end(metadata: Any) -> int:
    return int(metadata[1]) if metadata is not None else 0


class _Reader:
    def __init__(self, path: Path, partitions: int) -> None:
        self.path = path
        self.partitions = partitions

    def source(self) -> Source:
        return read_source(self.path)

    def next_range(self, source: Source, last: Any) -> list[int]:
        first = _end(last)
        return [first, max(first, min(first + source.take, source.rows))]

    def emit(self, attempt: TransactionAttempt, collector: Any, partition: int, metadata: Any) -> None:
        numbers = (n * self.partitions + partition for n in range(*metadata))
        collector.emit_all([[attempt, number, key_of(number)] for number in numbers])


class _Coordinator(IPartitionedCoordinator, IOpaqueCoordinator):
    def __init__(self, reader: _Reader, waits_for_gone: bool) -> None:
        self._reader = reader
        self._waits_for_gone = waits_for_gone

    def num_partitions(self) -> int:
        return self._reader.partitions

    def is_ready_after(self, positions: Mapping[int, Any], batches_ahead: int) -> bool:
        source = self._reader.source()
        there = [p for p in range(self._reader.partitions) if self._waits_for_gone or p not in source.gone]
        return any(source.rows > _end(positions.get(p)) + batches_ahead * source.take for p in there)


class _Emitter(IPartitionedEmitter):
    def __init__(self, reader: _Reader) -> None:
        self._reader = reader

    def emit_partition_batch_new(self, attempt: TransactionAttempt, collector: Any, partition: int, last: Any) -> Any:
        source = self._there(partition)
        metadata = self._reader.next_range(source, last)
        self._reader.emit(attempt, collector, partition, metadata)
        return metadata

    def emit_partition_batch(self, attempt: TransactionAttempt, collector: Any, partition: int, metadata: Any) -> None:
        self._there(partition)
        self._reader.emit(attempt, collector, partition, metadata)

    def _there(self, partition: int) -> Source:
        source = self._reader.source()
        if partition in source.gone:
            raise FailedException(f"partition {partition} is gone")
        return source


class _OpaqueEmitter(IOpaqueEmitter):
    def __init__(self, reader: _Reader) -> None:
        self._reader = reader

    def num_partitions(self) -> int:
        return self._reader.partitions

    def emit_partition_batch(self, attempt: TransactionAttempt, collector: Any, partition: int, last: Any) -> Any:
        source = self._reader.source()
        if partition in source.gone:
            return None
        metadata = self._reader.next_range(source, last)
        self._reader.emit(attempt, collector, partition, metadata)
        return metadata


class IdempotentNumbers(IPartitionedTransactionalSpout):
    """The same txid gives the same numbers; a partition that is gone holds everything up."""

    emits_on_executors = True

    def __init__(self, path: Path, partitions: int) -> None:
        self._reader = _Reader(path, partitions)

    def get_coordinator(self, conf: Any, context: Any) -> IPartitionedCoordinator:
        return _Coordinator(self._reader, waits_for_gone=True)

    def get_emitter(self, conf: Any, context: Any) -> IPartitionedEmitter:
        return _Emitter(self._reader)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(NUMBER_FIELDS)


class OpaqueNumbers(IOpaquePartitionedTransactionalSpout):
    """A replay takes what there is by then; a partition that is gone is left out."""

    emits_on_executors = True

    def __init__(self, path: Path, partitions: int) -> None:
        self._reader = _Reader(path, partitions)

    def get_coordinator(self, conf: Any, context: Any) -> IOpaqueCoordinator:
        return _Coordinator(self._reader, waits_for_gone=False)

    def get_emitter(self, conf: Any, context: Any) -> IOpaqueEmitter:
        return _OpaqueEmitter(self._reader)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(NUMBER_FIELDS)
