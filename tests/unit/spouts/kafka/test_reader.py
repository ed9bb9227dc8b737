"""What a consumer gives is sorted by partition, whatever comes side by side, late, or with errors between."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from typing import Any

import pytest

kafka = pytest.importorskip("confluent_kafka", reason="stormline[kafka] is optional")

from stormline.spouts.kafka import reader as readers  # noqa: E402
from stormline.spouts.kafka.partitions import Place  # noqa: E402
from stormline.spouts.kafka.reader import PartitionFailed, Piece, RangeReader, Stalled  # noqa: E402

A, B, OTHER = Place("a", 0), Place("a", 1), Place("b", 0)


class FakeConsumer:
    """Gives what is there, as often as it is asked."""

    def __init__(self, *takes: list[Any]) -> None:
        self.takes = [*takes]
        self.unassigned: list[tuple[str, int]] = []

    def incremental_assign(self, partitions: Any) -> None: ...

    def incremental_unassign(self, partitions: Iterable[Any]) -> None:
        self.unassigned += [(one.topic, one.partition) for one in partitions]

    def consume(self, number: int, secs: float) -> list[Any]:
        return self.takes.pop(0) if self.takes else []

    def poll(self, secs: float) -> None:
        return None


def record(place: Place, offset: int, size: int = 1) -> Any:
    return kafka.Message(topic=place.topic, partition=place.partition, offset=offset, value=b"x" * size)


def error(place: Place, offset: int, code: int = kafka.KafkaError._PARTITION_EOF) -> Any:
    return kafka.Message(topic=place.topic, partition=place.partition, offset=offset, error=kafka.KafkaError(code))


class Kept:
    """Takes records, and keeps the offsets of each take."""

    def __init__(self, at_once: int = 1000) -> None:
        self.at_once = at_once
        self.takes: list[list[int]] = []

    def take(self, messages: list[Any]) -> None:
        self.takes.append([message.offset() for message in messages])


def reader(starts: dict[Place, int], *takes: list[Any]) -> tuple[RangeReader, FakeConsumer]:
    consumer = FakeConsumer(*takes)
    made = RangeReader(consumer, 0.2)  # type: ignore[arg-type]
    made.want({place: (start, -1) for place, start in starts.items()})
    return made, consumer


def offsets(made: RangeReader, place: Place, start: int, end: int) -> list[int]:
    kept = Kept()
    piece = made.read(place, start, end, kept)
    found = [offset for take in kept.takes for offset in take]
    assert piece == Piece(len(found), end)
    return found


def test_records_of_several_partitions_and_topics_come_side_by_side() -> None:
    took = [record(A, 0), record(A, 1), record(B, 7), record(OTHER, 3), record(A, 2), record(B, 8)]
    made, _ = reader({A: 0, B: 7, OTHER: 3}, took)
    assert offsets(made, A, 0, 3) == [0, 1, 2]
    assert offsets(made, B, 7, 9) == [7, 8]
    assert offsets(made, OTHER, 3, 4) == [3]


def test_what_comes_again_and_what_nobody_asked_for_is_left_out() -> None:
    made, _ = reader({A: 5}, [record(A, 5), record(A, 6)], [record(B, 0)], [record(A, 5), record(A, 6), record(A, 7)])
    assert offsets(made, A, 5, 8) == [5, 6, 7]


def test_an_end_before_the_records_that_it_is_behind_costs_none_of_them() -> None:
    made, _ = reader({A: 0, B: 0}, [error(A, 2), record(A, 0), record(A, 1), error(B, 4), record(B, 0)])
    assert offsets(made, A, 0, 2) == [0, 1]
    assert offsets(made, B, 0, 4) == [0]  # what follows are markers, or records of aborted transactions


def test_an_error_is_told_when_its_partition_is_read_and_costs_the_others_nothing() -> None:
    lost = kafka.KafkaError._AUTO_OFFSET_RESET
    made, consumer = reader({A: 0, B: 0}, [record(A, 0), error(B, 0, lost), record(A, 1)])
    with pytest.raises(PartitionFailed) as failed:
        made.read(B, 0, 1, Kept())
    assert failed.value.error.code() == lost
    assert failed.value.given is None
    assert consumer.unassigned == [B]
    assert offsets(made, A, 0, 2) == [0, 1]


def test_the_rest_of_a_take_waits_for_the_next_range() -> None:
    made, _ = reader({A: 0}, [record(A, offset) for offset in range(6)])
    assert offsets(made, A, 0, 2) == [0, 1]
    assert offsets(made, A, 2, 5) == [2, 3, 4]
    assert offsets(made, A, 5, 6) == [5]


def test_what_was_read_is_forgotten_though_something_waits_behind_it_at_all_times() -> None:
    """A backlog is read so for hours."""
    takes = [[record(A, offset) for offset in range(first, first + 10)] for first in range(0, 1_000, 10)]
    made, consumer = reader({A: 0}, *takes)
    del takes
    assert offsets(made, A, 0, 5) == [0, 1, 2, 3, 4]
    for start in range(5, 900, 10):
        assert offsets(made, A, start, start + 10) == [*range(start, start + 10)]
    consumer.takes.clear()
    left = [one.offset() for one in gc.get_objects() if issubclass(type(one), kafka.Message) and one.topic() == A.topic]
    assert len(left) < 50, len(left)


def test_a_partition_that_nobody_reads_is_received_no_further_when_much_of_it_waits() -> None:
    much = [record(B, offset, 9 << 20) for offset in range(2)]
    made, consumer = reader({A: 0, B: 0}, [*much, record(A, 0)])
    assert offsets(made, A, 0, 1) == [0]
    assert consumer.unassigned == [B]
    assert offsets(made, B, 0, 2) == [0, 1]


def test_a_range_is_given_as_it_comes_and_its_end_when_all_of_it_has_been_received(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(readers, "LAST_RECORDS", 2)
    made, consumer = reader({A: 0}, *[[record(A, offset), record(A, offset + 1)] for offset in range(0, 12, 2)])
    kept, received = Kept(at_once=3), []
    piece = made.read(A, 0, 11, kept, received=lambda: received.append([len(kept.takes), made.received]))
    assert kept.takes == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10]]
    assert received == [[2, 12]]
    assert piece == Piece(11, 11)
    assert not consumer.takes
    assert offsets(made, A, 11, 12) == [11]


def test_an_error_says_what_was_given_of_its_range_before_and_what_waited_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(readers, "LAST_RECORDS", 0)
    lost = error(A, 3, kafka.KafkaError._AUTO_OFFSET_RESET)
    made, consumer = reader({A: 0}, [record(A, 0), record(A, 1)], [record(A, 2), lost])
    kept = Kept(at_once=2)
    with pytest.raises(PartitionFailed) as failed:
        made.read(A, 0, 9, kept)
    assert kept.takes == [[0, 1]]
    assert failed.value.given == Piece(2, 2)
    assert consumer.unassigned == [A]


def test_what_came_before_nothing_more_did_is_given() -> None:
    made, _ = reader({A: 4}, [record(A, 4), record(A, 5)])
    kept = Kept()
    with pytest.raises(Stalled) as stalled:
        made.read(A, 4, 9, kept)
    assert kept.takes == [[4, 5]]
    assert (stalled.value.start, stalled.value.end) == (4, 6)


def test_so_many_bytes_are_given_and_the_rest_waits() -> None:
    made, _ = reader({A: 0}, [record(A, offset, 10) for offset in range(6)])
    for first, last in ((0, 2), (2, 4)):
        kept = Kept()
        assert made.read(A, first, 6, kept, bytes_max=11) == Piece(2, last)
        assert kept.takes == [[*range(first, last)]]
