"""What a consumer gives is sorted by partition, whatever comes side by side, late, or with errors between."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from typing import Any

import pytest

kafka = pytest.importorskip("confluent_kafka", reason="stormline[kafka] is optional")

from stormline.spouts.kafka.partitions import Place  # noqa: E402
from stormline.spouts.kafka.reader import PartitionFailed, RangeReader  # noqa: E402

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


def reader(starts: dict[Place, int], *takes: list[Any]) -> tuple[RangeReader, FakeConsumer]:
    consumer = FakeConsumer(*takes)
    made = RangeReader(consumer, 0.2)  # type: ignore[arg-type]
    made.want({place: (start, -1) for place, start in starts.items()})
    return made, consumer


def offsets(made: RangeReader, place: Place, start: int, end: int) -> list[int]:
    return [message.offset() for message in made.read(place, start, end).messages]  # type: ignore[misc]


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
        made.read(B, 0, 1)
    assert failed.value.error.code() == lost
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
