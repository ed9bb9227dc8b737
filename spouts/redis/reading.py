"""The coordinator and the emitters of Redis Streams: batches are ranges of ids."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from stormline.spouts.checksum import rows_checksum
from stormline.spouts.redis.entries import EntryProblem, EntrySettings
from stormline.spouts.redis.errors import BadEntry, EntriesLost
from stormline.spouts.redis.positions import FIRST, Range, Stream, begun, is_another, missing, streams_of
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.contracts import Collector, IPartitionedCoordinator, IPartitionedEmitter, Metadata

if TYPE_CHECKING:
    from stormline.spouts.redis.client import Client, Entry

log = logging.getLogger("stormline")


class StreamCoordinator(IPartitionedCoordinator):
    """Knows the streams by their numbers, and asks whether one has entries that no batch has."""

    def __init__(self, client: Client, names: tuple[str, ...], latest: bool, entries_max: int) -> None:
        self._client = client
        self._names = names
        self._latest = latest
        self._entries_max = entries_max
        self._streams: list[Stream] = []
        self._described = False

    def resume_partitions(self, described: Metadata) -> None:
        """Go on with the streams that are stored."""
        self._streams = streams_of(described)
        self._described = described is not None

    def is_ready_after(self, positions: Mapping[int, Metadata], batches_ahead: int) -> bool:
        """Return whether entries are left after these positions and that many more batches.

        Raises:
            FailedException: the server is away.
        """
        self._find()
        if not self._described and self._latest:
            return True  # an empty batch, so that what is the latest now is so for ever
        ahead = batches_ahead * self._entries_max
        for number, stream in enumerate(self._streams):
            metadata = positions.get(number)
            added = stream.added if metadata is None else Range.from_metadata(metadata).added
            state = self._client.state(stream.name)
            # Not as many as were added before: the emitter finds out what has happened.
            if (0 if state is None else state.added) - added > ahead or (state is None and added):
                return True
            if state is not None and state.added < added:
                return True
        return False

    def describe_partitions(self, described: Metadata) -> Metadata:
        """Return all streams, and where they begin."""
        self._find()
        self._described = True
        return [[*stream] for stream in self._streams]

    def num_partitions(self) -> int:
        """Return the number of streams."""
        return len(self._streams)

    def close(self) -> None:
        """End the connection."""
        self._client.close()

    def _find(self) -> None:
        known = {stream.name for stream in self._streams}
        for name in self._names:
            if name not in known:  # one that is named later is read from its beginning
                latest = self._latest and not self._described
                self._streams.append(begun(name, self._client.state(name), latest))


class StreamEmitter(IPartitionedEmitter):
    """Reads new entries, and again exactly those that are stored."""

    def __init__(
        self,
        client: Client,
        entries: EntrySettings,
        entries_max: int,
        lost_stops: bool,
        skips: bool,
        count_gap: Callable[[], None],
        count_bad: Callable[[], None],
    ) -> None:
        self._client = client
        self._entries = entries
        self._entries_max = entries_max
        self._lost_stops = lost_stops
        self._skips = skips
        self._count_gap = count_gap
        self._count_bad = count_bad
        self._streams: list[Stream] = []
        self._told: dict[int, str] = {}

    def begin_batch(
        self, described: Metadata, positions: Mapping[int, Metadata], stored: Mapping[int, Metadata]
    ) -> None:
        """Take in the streams."""
        self._streams = streams_of(described)

    def emit_partition_batch_new(
        self, attempt: TransactionAttempt, collector: Collector, partition: int, last_metadata: Metadata
    ) -> Metadata:
        """Emit what there is after the last batch, as far as the cap allows.

        Raises:
            EntriesLost: some that come next are gone.
            FailedException: the server is away.
        """
        stream = self._streams[partition]
        last = None if last_metadata is None else Range.from_metadata(last_metadata)
        start, added = (stream.start, stream.added) if last is None else (last.end, last.added)
        look, entries = self._client.after(stream.name, start, self._entries_max)
        lost = missing(stream, start, added, look)
        if lost:
            self._stop_or_tell(partition, lost)
            if is_another(start, added, look.state):
                start, added = FIRST, 0
                look, entries = self._client.after(stream.name, start, self._entries_max)
        self._emit(attempt, collector, stream, entries)
        end = entries[-1][0] if entries else start
        return [start, end, len(entries), _checksum(entries), look.added_at_end(start, added)]

    def emit_partition_batch(
        self, attempt: TransactionAttempt, collector: Collector, partition: int, metadata: Metadata
    ) -> None:
        """Emit the entries of a stored range again.

        Raises:
            EntriesLost: some are gone, or are others.
            FailedException: the server is away.
        """
        stored, stream = Range.from_metadata(metadata), self._streams[partition]
        entries: list[Entry] = []
        if stored.entries:
            entries = self._client.between(stream.name, stored.start, stored.end, stored.entries + 1)
        where = f"stream {stream.name!r}: the entries after {stored.start} up to {stored.end}"
        if len(entries) != stored.entries:
            raise EntriesLost.of(f"{where} were {stored.entries}, and now are {len(entries)}", replay=True)
        if _checksum(entries) != stored.checksum:
            raise EntriesLost.of(f"{where} are others than they were: the stream was made anew", replay=True)
        self._emit(attempt, collector, stream, entries)

    def close(self) -> None:
        """End the connection."""
        self._client.close()

    def _stop_or_tell(self, partition: int, lost: str) -> None:
        error = EntriesLost.of(lost, replay=False)
        if self._lost_stops:
            raise error
        if self._told.get(partition) != lost:
            self._told[partition] = lost
            log.error("%s; on_lost='continue': going on with what there is", error)
            self._count_gap()

    def _emit(self, attempt: TransactionAttempt, collector: Collector, stream: Stream, entries: list[Entry]) -> None:
        rows = []
        bad: list[tuple[str, str]] = []
        for entry in entries:
            try:
                rows.append([attempt, *self._entries.row(stream.name, entry)])
            except EntryProblem as problem:
                if not self._skips:
                    raise BadEntry.at(stream.name, entry[0], str(problem)) from problem.__cause__
                bad.append((entry[0], str(problem)))
                self._count_bad()
        if bad:
            log.warning(
                "stream %r: left out %d of %d entries; the first: %s: %s", stream.name, len(bad), len(entries), *bad[0]
            )
        collector.emit_all(rows)


def _checksum(entries: list[Entry]) -> int:
    return rows_checksum([[entry_id, *(part for pair in held.items() for part in pair)] for entry_id, held in entries])
