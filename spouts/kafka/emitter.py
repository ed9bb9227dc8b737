"""The emitters of both Kafka spouts: each reads the partitions of its task, a range for each batch."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from stormline.spouts.kafka.partitions import Place, Range
from stormline.spouts.kafka.ranges import Ranges, TopicGone, silent
from stormline.spouts.kafka.reader import Stalled
from stormline.spouts.kafka.records import RecordEmitter, Share
from stormline.spouts.kafka.settings import KafkaSettings
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.contracts import Collector, IOpaqueEmitter, IPartitionedEmitter, Metadata
from stormline.topology.errors import FailedException

log = logging.getLogger("stormline")

SILENT_SECS = 5.0
"""How long a partition that did not answer is left alone, while the others go on: looking at it takes time."""

REFUSED_SECS = 0.5
"""How long one is left alone of which the brokers said at once that it is away."""


class KafkaEmitter(IPartitionedEmitter):
    """Reads new ranges, and again exactly those that are stored."""

    def __init__(self, settings: KafkaSettings, ranges: Ranges, records: RecordEmitter) -> None:
        self._settings = settings
        self._ranges = ranges
        self._records = records

    def begin_batch(
        self, described: Metadata, positions: Mapping[int, Metadata], stored: Mapping[int, Metadata]
    ) -> None:
        """Let all partitions that will be asked for be received."""
        self._ranges.begin(described, positions, stored)

    def emit_partition_batch_new(
        self, attempt: TransactionAttempt, collector: Collector, partition: int, last_metadata: Metadata
    ) -> Metadata:
        """Emit what is there from where the last batch ended, as far as the caps allow.

        Raises:
            RecordsLost: it is not there any more.
            FailedException: the brokers do not answer.
        """
        ranges, table = self._ranges, self._ranges.table
        start, epoch = _position(last_metadata)
        if table.is_gone(partition):
            return [start, start, 0, epoch]
        start = ranges.start(partition) if last_metadata is None else start
        share = self._records.share(attempt, collector, table.place(partition))
        try:
            start, end = ranges.read_new(partition, start, epoch, share)
        except TopicGone as gone:
            if share.records:
                raise FailedException(str(gone)) from gone
            log.error("%s; on_lost='continue': the next batch begins with the new one", gone)
            return [start, start, 0, epoch]
        except Stalled as error:
            raise silent(table.place(partition), self._settings) from error
        share.end()
        return _metadata(start, end, share, epoch)

    def emit_partition_batch(
        self, attempt: TransactionAttempt, collector: Collector, partition: int, metadata: Metadata
    ) -> None:
        """Emit the records of a stored range again.

        Raises:
            RecordsLost: some are not there any more.
            FailedException: the brokers do not answer.
        """
        share = self._records.share(attempt, collector, self._ranges.table.place(partition))
        self._ranges.read_again(partition, Range.from_metadata(metadata), share)
        share.end()

    def close(self) -> None:
        """End the connections."""
        self._ranges.close()


class OpaqueKafkaEmitter(IOpaqueEmitter):
    """Reads what is there; partitions that do not answer give nothing, and are looked at again later."""

    def __init__(self, ranges: Ranges, records: RecordEmitter) -> None:
        self._ranges = ranges
        self._records = records
        self._stored: dict[int, Range] = {}
        self._away_until: dict[Place, float] = {}

    def num_partitions(self) -> int:
        """Return how many partitions have been found."""
        return len(self._ranges.table)

    def begin_batch(
        self, described: Metadata, positions: Mapping[int, Metadata], stored: Mapping[int, Metadata]
    ) -> None:
        """Let all partitions that will be asked for be received; what is stored must be as it was."""
        self._stored = {number: Range.from_metadata(metadata) for number, metadata in stored.items()}
        self._ranges.begin(described, positions, stored)

    def emit_partition_batch(
        self, attempt: TransactionAttempt, collector: Collector, partition: int, last_metadata: Metadata
    ) -> Metadata:
        """Emit what is there; None where there is nothing, or the partition is away.

        Raises:
            RecordsLost: what comes next is not there any more.
            FailedException: the brokers do not answer, and the batch must be as it was.
        """
        place = self._ranges.table.place(partition)
        share = self._records.share(attempt, collector, place)
        stored = self._stored.get(partition)
        if stored is not None:
            self._ranges.read_again(partition, stored, share)
            share.end()
            return [*stored]
        if self._ranges.table.is_gone(partition) or time.monotonic() < self._away_until.get(place, 0.0):
            return None
        start, epoch = _position(last_metadata)
        try:
            start = self._ranges.start(partition) if last_metadata is None else start
            start, end = self._ranges.read_new(partition, start, epoch, share)
        except TopicGone as gone:
            if share.records:
                raise FailedException(str(gone)) from gone
            log.error("%s; on_lost='continue': the next batch begins with the new one", gone)
            return None
        except Stalled as error:
            start, end = error.start, error.end
            self._leave_alone(place, "no record comes, though there are some", SILENT_SECS)
        except FailedException as error:
            if share.records:
                raise
            self._leave_alone(place, str(error), REFUSED_SECS)
            return None
        if last_metadata is not None and end == start == last_metadata[1]:
            return None
        share.end()
        return _metadata(start, end, share, epoch)

    def close(self) -> None:
        """End the connections."""
        self._ranges.close()

    def _leave_alone(self, place: Place, why: str, secs: float) -> None:
        log.warning("%s is away, and gives nothing for %g s: %s", place, secs, why)
        self._away_until[place] = time.monotonic() + secs


def _position(last_metadata: Metadata) -> tuple[int, int]:
    """Return where a batch begins, and the epoch of the leader who wrote the record before."""
    if last_metadata is None:
        return 0, -1
    last = Range.from_metadata(last_metadata)
    return last.end, last.epoch


def _metadata(start: int, end: int, share: Share, epoch: int) -> list[int]:
    return [start, end, share.records, epoch if share.epoch is None else share.epoch]
