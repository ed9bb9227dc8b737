"""RangeReader: reads ranges of offsets, from wherever a consumer stands, and keeps what it has received beyond them."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from operator import ne
from typing import NamedTuple, Protocol

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from stormline.spouts.kafka.partitions import Place

TAKEN_AT_ONCE = 2000
FORWARD_MAX = 50_000
"""Offsets that are read over in place of beginning anew, which costs as long as some ten thousand records."""

HELD_BYTES_MAX = 16 << 20
"""What may wait of a partition that is not being read, before it is received no further."""

LAST_RECORDS = 8000
"""Offsets at the end of a range that are given together, when all has been received: what is asked for when it has
been is answered meanwhile."""

WAIT_SECS = 0.2


class Taker(Protocol):
    """What is given the records of a range, in their order, as they come: `at_once` of them, or what is left."""

    @property
    def at_once(self) -> int: ...

    def take(self, messages: list[Message]) -> None: ...


class Piece(NamedTuple):
    """What was given of a range [start, `end`) of offsets: all `records` that there are."""

    records: int
    end: int


class Stalled(Exception):
    """Nothing more came in time. What has come has been given, from `start` to `end`."""

    def __init__(self, start: int, end: int) -> None:
        super().__init__("nothing came in time")
        self.start = start
        self.end = end


class PartitionFailed(Exception):
    """The brokers gave an error in place of records. `given`: what has been given before; None where nothing has."""

    def __init__(self, error: KafkaError, given: Piece | None) -> None:
        super().__init__(error.str())
        self.error = error
        self.given = given


@dataclass(slots=True)
class _Held:
    """What has been received of a partition: all records of the offsets from `since` to before `until`."""

    since: int
    until: int
    messages: list[Message] = field(default_factory=list)
    taken: int = 0
    received: bool = True
    held_bytes: int = 0
    error: KafkaError | None = None

    @property
    def waiting(self) -> int:
        """Number of records that have not been taken."""
        return len(self.messages) - self.taken

    def keep(self, run: list[Message]) -> None:
        """Take in consecutive records; those that have come before are left out."""
        if _offset(run[0]) < self.until:
            run = run[bisect_left(run, self.until, key=_offset) :]
        if run:
            self.messages.extend(run)
            self.until = _offset(run[-1]) + 1

    def skip_to(self, start: int) -> None:
        """Forget all before an offset."""
        messages, at = self.messages, self.taken
        if at < len(messages) and messages[at].offset() < start:  # type: ignore[operator]
            at = bisect_left(messages, start, at, key=_offset)
        self._go_on_at(at)
        self.since = max(self.since, start)

    def take(self, end: int) -> list[Message]:
        """Take all records before an offset."""
        messages, at = self.messages, self.taken
        last = len(messages)
        if last > at and messages[-1].offset() >= end:  # type: ignore[operator]
            last = bisect_left(messages, end, at, key=_offset)
        found = messages if at == 0 and last == len(messages) else messages[at:last]
        self._go_on_at(last)
        self.since = end
        self.held_bytes = 0
        return found

    def _go_on_at(self, position: int) -> None:
        """Forget what is before a position, in steps: as much is taken from the list as is left in it."""
        if 2 * position < len(self.messages):
            self.taken = position
        else:
            self.messages, self.taken = self.messages[position:], 0


class RangeReader:
    """Reads ranges of partitions with one consumer, which receives ahead of what is asked for.

    `received` grows with every record that came.
    """

    def __init__(self, consumer: Consumer, timeout_secs: float) -> None:
        self._consumer = consumer
        self._timeout_secs = timeout_secs
        self._held: dict[Place, _Held] = {}
        self._asked_for: set[Place] = set()
        self.received = 0

    def want(self, starts: Mapping[Place, tuple[int, int]]) -> None:
        """Let partitions be received from these (offset, epoch of the leader who wrote what is before it) on.

        Where one stands a little before, or has been received from there on, it goes on as it is.
        """
        anew = {}
        for place, (start, epoch) in starts.items():
            held = self._held.get(place)
            if held is None or held.error is not None or not held.since <= start <= held.until + FORWARD_MAX:
                anew[place] = (start, epoch)
        self._begin(anew)

    def forget(self, place: Place) -> None:
        """Receive no more of a partition, and forget what was received."""
        held = self._held.pop(place, None)
        if held is not None and held.received:
            self._consumer.incremental_unassign([TopicPartition(*place)])

    def read(
        self,
        place: Place,
        start: int,
        end: int,
        taker: Taker,
        bytes_max: int | None = None,
        epoch: int = -1,
        received: Callable[[], None] = lambda: None,
    ) -> Piece:
        """Give the records of a range: to `end`, or to the record with which `bytes_max` is reached.

        They are given as they come, so that few of them wait: those that do not fit into a processor's cache take half
        as long again.

        Args:
            place: the partition.
            start: the first offset.
            end: the offset after the last; all before it must be committed or aborted.
            taker: what is given them.
            bytes_max: how many bytes of keys and values there may be; one record there is in any case.
            epoch: of the leader who wrote the record before `start`, -1 where that is not known.
            received: called when the last ones have been received, before they are given.

        Raises:
            Stalled: nothing came in time.
            PartitionFailed: the brokers gave an error.
        """
        if start >= end:
            return Piece(0, end)
        self.want({place: (start, epoch)})
        held = self._held[place]
        held.skip_to(start)
        deadline = time.monotonic() + self._timeout_secs
        counted = size = given = 0
        while True:
            if bytes_max is not None:
                messages, at = held.messages, held.taken
                while at + counted < len(messages) and size < bytes_max:
                    message = messages[at + counted]
                    if message.offset() >= end:  # type: ignore[operator]
                        break
                    size += _bytes_of(message)
                    counted += 1
                    if size >= bytes_max:
                        end = message.offset() + 1  # type: ignore[operator]
            if held.until >= end:
                received()
                return Piece(given + _give(taker, held.take(end)), end)
            if held.error is not None:
                self.forget(place)
                raise PartitionFailed(held.error, Piece(given, held.since) if given else None)
            if bytes_max is None and held.waiting >= taker.at_once and end - held.until > LAST_RECORDS:
                given += _give(taker, held.take(held.until))
                deadline = time.monotonic() + self._timeout_secs
            if not held.received:
                self._resume(place, held)
            before = held.until
            left = taker.at_once - held.waiting
            most = TAKEN_AT_ONCE if left <= 0 else min(TAKEN_AT_ONCE, left)
            self._receive({place}, min(WAIT_SECS, self._timeout_secs), most)
            held.skip_to(start)
            if held.until > before:
                deadline = time.monotonic() + self._timeout_secs
            elif time.monotonic() > deadline and held.error is None:
                until = max(held.until, start)
                _give(taker, held.take(until))
                raise Stalled(start, until)

    def fill(self, ends: Mapping[Place, int]) -> None:
        """Receive of several partitions up to these offsets, so that reading them waits for nothing more.

        It gives up where nothing comes for a moment: what is wrong then is told when that partition is read.
        """
        left = {place for place in ends if place in self._held}
        while left:
            left = {place for place in left if self._held[place].until < ends[place] and self._held[place].received}
            left = {place for place in left if self._held[place].error is None}
            if left and not self._receive(left, WAIT_SECS):
                return

    def _begin(self, anew: Mapping[Place, tuple[int, int]]) -> None:
        if not anew:
            return
        old = [TopicPartition(*place) for place in anew if place in self._held and self._held[place].received]
        if old:
            self._consumer.incremental_unassign(old)
        self._asked_for.update(anew)
        for place, (start, _) in anew.items():
            self._held[place] = _Held(start, start)
        self._consumer.incremental_assign([_from(place, *at) for place, at in anew.items()])

    def _resume(self, place: Place, held: _Held) -> None:
        held.received = True
        self._consumer.incremental_assign([_from(place, held.until, -1)])

    def _receive(self, wanted: Collection[Place], wait_secs: float, most: int = TAKEN_AT_ONCE) -> bool:
        """Take in what has come; where nothing has, wait for one message. Return whether anything came."""
        messages = self._consumer.consume(most, 0)
        if not messages:
            message = self._consumer.poll(wait_secs)
            if message is None:
                return False
            messages = [message]
        self.received += len(messages)
        self._sort(messages)
        for place, held in self._held.items():
            if place not in wanted and held.received and held.held_bytes > HELD_BYTES_MAX:
                self._consumer.incremental_unassign([TopicPartition(*place)])
                held.received = False
        return True

    def _sort(self, messages: list[Message]) -> None:
        """Give each message to its partition. Errors wait there too: none may cost the messages that came with it."""
        failed = []
        if any(map(Message.error, messages)):
            failed = [message for message in messages if message.error() is not None]
            messages = [message for message in messages if message.error() is None]
        self._keep(messages)
        for message in failed:  # after the records before them, which an end would make look like old ones
            self._hear(message)

    def _keep(self, messages: list[Message]) -> None:
        """Give each message to its partition: by runs, since the consumer gives them so, and each call here counts."""
        if len(self._asked_for) > 1:
            places = list(zip(map(Message.topic, messages), map(Message.partition, messages), strict=True))
            changes = [*map(ne, places, places[1:]), True]
        else:
            changes = None
        end = 0
        while end < len(messages):
            start, end = end, len(messages) if changes is None else changes.index(True, end) + 1
            run = messages if end - start == len(messages) else messages[start:end]
            known = self._held.get(Place(run[0].topic(), run[0].partition()))  # type: ignore[arg-type]
            if known is not None:
                known.keep(run)
                if len(self._held) > 1:
                    known.held_bytes += sum(map(len, run))

    def _hear(self, message: Message) -> None:
        error: KafkaError = message.error()  # type: ignore[assignment]
        held = self._held.get(Place(message.topic() or "", message.partition() or 0))
        if held is None:
            return  # of a connection: the library goes on trying, and its error callback has it
        if error.code() == KafkaError._PARTITION_EOF:
            held.until = max(held.until, message.offset() or 0)
        else:
            held.error = error


def _give(taker: Taker, messages: list[Message]) -> int:
    if messages:
        taker.take(messages)
    return len(messages)


def _from(place: Place, start: int, epoch: int) -> TopicPartition:
    if epoch < 0:
        return TopicPartition(place.topic, place.partition, start)
    return TopicPartition(place.topic, place.partition, start, "", epoch)


def _offset(message: Message) -> int:
    offset: int = message.offset()  # type: ignore[assignment]
    return offset


def _bytes_of(message: Message) -> int:
    key = message.key()
    return len(message) + (len(key) if key else 0)
