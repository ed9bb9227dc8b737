"""Ranges: what a batch has of each partition, read from the brokers and checked to be what it should be."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial

from confluent_kafka import KafkaError

from stormline.spouts.kafka.client import EARLIEST, LATEST, UNKNOWN, Cluster, TopicFound
from stormline.spouts.kafka.errors import RecordsLost
from stormline.spouts.kafka.partitions import PartitionTable, Place, Range
from stormline.spouts.kafka.reader import PartitionFailed, RangeReader, Stalled, Taker
from stormline.spouts.kafka.settings import KafkaSettings
from stormline.topology.contracts import Metadata
from stormline.topology.errors import FailedException

log = logging.getLogger("stormline")

LOST = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError._LOG_TRUNCATION, KafkaError.OFFSET_OUT_OF_RANGE})


class TopicGone(Exception):
    """A topic is another one than the batch knows, and the user wants to go on."""


class Ranges:
    """Reads the ranges of one spout task.

    Args:
        settings: how the spout was declared.
        cluster: its connection to the brokers, which is closed with this.
        task, tasks: the partitions task, task + tasks, task + 2 · tasks, … are this task's.
        on_gap: called for each gap that is gone over, where the user wants that.
    """

    def __init__(
        self, settings: KafkaSettings, cluster: Cluster, task: int, tasks: int, on_gap: Callable[[], None]
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._task = task
        self._tasks = tasks
        self._on_gap = on_gap
        self._reader = RangeReader(cluster.consumer, settings.timeout_secs)
        self.table = PartitionTable()
        self._described: Metadata = None
        self._ends: dict[Place, int] = {}
        self._asked_ends = False
        self._live: dict[Place, int] = {}
        """Where each partition begins of which the batch may have something."""
        self._filled = False
        self._checked = 0
        self._asking: tuple[int, list[str], Callable[[], dict[str, TopicFound]]] | None = None
        """When so many records had been received these topics were asked for; what gives the answer."""
        self._gone: dict[tuple[str, str], str] = {}
        """Topics in whose place there are others, by name and id, and what is to be told of each."""
        self._suspected: set[Place] = set()

    def begin(self, described: Metadata, positions: Mapping[int, Metadata], stored: Mapping[int, Metadata]) -> None:
        """Let all partitions that will be asked for be received, from where the batch begins."""
        if described != self._described:
            self._described, self.table = described, PartitionTable.from_metadata(described)
        self._asked_ends = False
        begin: dict[Place, tuple[int, int]] = {}
        earliest = []
        known = {**positions, **stored}
        for number in range(self._task, len(self.table), self._tasks):
            place, metadata, start = self.table.place(number), known.get(number), self.table.start(number)
            if self.table.is_gone(number):
                continue
            if metadata is not None:
                at = Range.from_metadata(metadata)
                begin[place] = (at.start, -1) if number in stored else (at.end, at.epoch)
            elif start is not None:
                begin[place] = (start, -1)
            else:
                earliest.append(place)
        for place, found in self._cluster.offsets(earliest, EARLIEST).items():
            if isinstance(found, int):
                begin[place] = (found, -1)
        self._live = {place: start for place, (start, _) in begin.items()}
        self._filled = False
        self._reader.want(begin)

    def start(self, number: int) -> int:
        """Return where a partition begins of which nothing has been read."""
        place = self.table.place(number)
        known = self._live.get(place)
        return self._offset(place, EARLIEST) if known is None else known

    def read_again(self, number: int, stored: Range, taker: Taker) -> None:
        """Give the records of a stored range.

        Raises:
            RecordsLost: some are not there any more.
            FailedException: the brokers do not answer.
        """
        if stored.start == stored.end:
            return
        place = self.table.place(number)
        if self.table.is_gone(number):
            now = self.table.ids[place.topic] or None
            raise RecordsLost.made_anew(place.topic, self.table.topic_id(number), now, replay=True)
        try:
            piece = self._reader.read(
                place, stored.start, stored.end, taker, received=partial(self._ask_topics, number)
            )
        except Stalled as error:
            self._check_topics_anew(number, replay=True)  # in place of a longer one it would wait for ever
            raise silent(place, self._settings) from error
        except PartitionFailed as error:
            self._failed(number, stored.start, error.error, replay=True)
            raise AssertionError("unreachable") from error
        self._check_topics(number, replay=True)
        if piece.records != stored.records:
            raise RecordsLost.fewer(str(place), stored.start, stored.end, stored.records, piece.records)

    def read_new(self, number: int, start: int, epoch: int, taker: Taker) -> tuple[int, int]:
        """Give what there is from an offset on; return from where, since some may be lost and the user wants to go on,
        and to where.

        Whatever it raises, some records may have been given. Where the brokers give an error after some, those are all
        that is given: the next range begins with the error.

        Raises:
            Stalled: nothing comes in time; what has come has been given.
            RecordsLost: what comes next is not there any more.
            TopicGone: the topic is another one, and the user wants to go on.
            FailedException: the brokers do not answer.
        """
        place = self.table.place(number)
        gone = self._gone.get((place.topic, self.table.ids[place.topic]))
        if gone is not None:
            raise TopicGone(gone)
        try:
            start, end = self._read(number, start, epoch, taker)
        except Stalled:
            self._check_topics(number, replay=False)
            raise
        except PartitionFailed as error:
            if error.given is not None:
                end = error.given.end
            else:
                start = self._failed(number, start, error.error, replay=False)
                start, end = self._read_on(number, start, taker)
        self._check_topics(number, replay=False)
        return start, end

    def close(self) -> None:
        """End the connections."""
        self._cluster.close()

    def _read_on(self, number: int, start: int, taker: Taker) -> tuple[int, int]:
        """Read from where to go on after an error."""
        try:
            return self._read(number, start, -1, taker)
        except PartitionFailed as again:
            if again.given is not None:
                return start, again.given.end
            raise self._cluster.failure(again.error, f"reading {self.table.place(number)}") from again

    def _read(self, number: int, start: int, epoch: int, taker: Taker) -> tuple[int, int]:
        place = self.table.place(number)
        stable = self._end(place, start)
        if stable < start:
            start = self._after_truncation(number, start, stable)
            return start, start
        self._suspected.discard(place)
        end = min(stable, start + self._settings.records_max)
        self._fill()
        received = partial(self._ask_topics, number)
        return start, self._reader.read(place, start, end, taker, self._settings.bytes_max, epoch, received).end

    def _fill(self) -> None:
        """Receive the whole batch of several partitions, once, so that its topics are asked for once."""
        if not self._filled and len(self._live) > 1:
            self._filled = True
            most = self._settings.records_max
            ends = {place: min(self._ends[place], at + most) for place, at in self._live.items() if place in self._ends}
            self._reader.fill(ends)

    def _offset(self, place: Place, at: int) -> int:
        answer = self._cluster.offsets([place], at)[place]
        if isinstance(answer, int):
            return answer
        raise self._cluster.failure(answer, f"the offsets of {place}")

    def _end(self, place: Place, start: int) -> int:
        """Return the offset up to which all is committed or aborted; asked for anew, once a batch, where it is reached.

        Raises:
            FailedException: the partition has no leader now.
        """
        if self._ends.get(place, -1) > start:
            return self._ends[place]
        if not self._asked_ends or place not in self._ends:
            self._asked_ends = True
            for found, answer in self._cluster.offsets(dict.fromkeys([*self._live, place]), LATEST).items():
                if isinstance(answer, int):
                    self._ends[found] = answer
                    continue
                self._ends.pop(found, None)
                if found == place:
                    raise self._cluster.failure(answer, f"asking for the end of {place}")
        return self._ends[place]

    def _check_topics(self, number: int, replay: bool) -> None:
        """Check that what was received is of the topics that it should be: after it was, since ids never return."""
        received, asking = self._reader.received, self._asking
        if received == self._checked:
            return
        topics = self._topics(number)
        self._asking = None
        found = asking[2]() if asking and asking[:2] == (received, topics) else self._cluster.described(topics)
        for topic in topics:
            stored = self.table.ids[topic]
            now = found[topic].topic_id if topic in found else None
            if now is None:
                self._cluster.check_missed(topic)
            if now != stored:
                self._changed(topic, stored, now, replay)
        self._checked = received

    def _check_topics_anew(self, number: int, replay: bool) -> None:
        """Check it though nothing has been received since it was: what went wrong may have come of another topic."""
        self._checked, self._asking = -1, None
        self._check_topics(number, replay)

    def _ask_topics(self, number: int) -> None:
        """Ask for what `_check_topics` checks, before the last records are given: their emits take as long as this."""
        received = self._reader.received
        if received != self._checked:
            topics = self._topics(number)
            self._asking = (received, topics, self._cluster.asking(topics))

    def _topics(self, number: int) -> list[str]:
        return sorted({self.table.place(number).topic, *(place.topic for place in self._live)})

    def _changed(self, topic: str, stored: str, now: str | None, replay: bool) -> None:
        """Forget what was received of a topic that is another one; the coordinator tells the batches to come."""
        for place in [place for place in self.table.numbers() if place.topic == topic]:
            self._reader.forget(place)
            self._ends.pop(place, None)
        lost = RecordsLost.made_anew(topic, stored, now, replay)
        if replay or self._settings.lost_stops:
            raise lost
        if now is not None:  # by now; one that was not found may come back
            self._gone[(topic, stored)] = str(lost)
        raise TopicGone(str(lost))

    def _failed(self, number: int, start: int, error: KafkaError, replay: bool) -> int:
        """Return where to go on after the brokers gave an error in place of records, or raise."""
        place = self.table.place(number)
        if error.code() in LOST or error.code() in UNKNOWN:
            self._check_topics_anew(number, replay)
        if error.code() not in LOST:
            raise self._cluster.failure(error, f"reading {place}")
        earliest = self._offset(place, EARLIEST)
        if start < earliest:
            return self._going_on(RecordsLost.retention(str(place), start, earliest, replay), replay, earliest)
        end = self._ends[place] = self._offset(place, LATEST)
        if error.code() == KafkaError._LOG_TRUNCATION or end < start:
            end = min(start, end)
            return self._going_on(RecordsLost.truncated(str(place), start, end, replay), replay, end)
        raise FailedException(f"{place}: {error.str()}")

    def _after_truncation(self, number: int, start: int, end: int) -> int:
        """Return where to go on when the log ends before what was read: believed when it is found twice."""
        place = self.table.place(number)
        self._check_topics_anew(number, replay=False)
        if place not in self._suspected:
            self._suspected.add(place)
            raise FailedException(f"{place} ends at offset {end}, and was read up to {start}: asking again")
        self._suspected.discard(place)
        return self._going_on(RecordsLost.truncated(str(place), start, end, False), False, end)

    def _going_on(self, lost: RecordsLost, replay: bool, start: int) -> int:
        if replay or self._settings.lost_stops:
            raise lost
        log.error("%s; on_lost='continue': going on at offset %d", lost, start)
        self._on_gap()
        return start


def silent(place: Place, settings: KafkaSettings) -> FailedException:
    """Return the error for a partition of which nothing came."""
    return FailedException(
        f"{place}: no record came within timeout_secs={settings.timeout_secs:g}, though there are some; tried again"
    )
