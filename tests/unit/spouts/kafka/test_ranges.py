"""Ranges are given while they come, and checked to be of their topics; an error in the middle ends one before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

kafka = pytest.importorskip("confluent_kafka", reason="stormline[kafka] is optional")

from stormline.spouts.kafka import KafkaTransactionalSpout  # noqa: E402
from stormline.spouts.kafka import reader as readers  # noqa: E402
from stormline.spouts.kafka.client import TopicFound  # noqa: E402
from stormline.spouts.kafka.errors import RecordsLost  # noqa: E402
from stormline.spouts.kafka.partitions import PartitionTable, Place, Range, Run  # noqa: E402
from stormline.spouts.kafka.ranges import Ranges, TopicGone  # noqa: E402
from tests.unit.spouts.kafka.test_reader import A, FakeConsumer, Kept, error, record  # noqa: E402

DESCRIBED = PartitionTable([Run(A.topic, "old", 0, 1, (0,))]).to_metadata()


class FakeCluster:
    """Knows one topic, and notes when it is asked for its id and when the answer is taken."""

    def __init__(self, consumer: FakeConsumer, kept: Kept, topic_id: str = "old") -> None:
        self.consumer = consumer
        self.events: list[tuple[str, int]] = []
        self._kept = kept
        self._topic_id = topic_id

    def asking(self, names: Sequence[str]) -> Callable[[], dict[str, TopicFound]]:
        self.events.append(("asked", len(self._kept.takes)))

        def answer() -> dict[str, TopicFound]:
            self.events.append(("answered", len(self._kept.takes)))
            return {name: TopicFound(self._topic_id, 1) for name in names}

        return answer

    def described(self, names: Sequence[str]) -> dict[str, TopicFound]:
        return self.asking(names)()

    def offsets(self, places: Sequence[Place], at: int) -> dict[Place, int]:
        return dict.fromkeys(places, 100)

    def failure(self, found: Any, what: str) -> Exception:
        return ValueError(f"{what}: {found.str()}")


def ranges(cluster: FakeCluster) -> Ranges:
    settings = KafkaTransactionalSpout(
        "host:9092", A.topic, ["value"], records_per_partition=4, on_lost="continue", timeout_secs=1
    )._settings
    made = Ranges(settings, cluster, 0, 1, lambda: None)  # type: ignore[arg-type]
    made.begin(DESCRIBED, {}, {})
    return made


def test_topics_are_asked_for_once_before_the_last_records_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "LAST_RECORDS", 0)
    kept = Kept(at_once=2)
    cluster = FakeCluster(FakeConsumer([record(A, 0), record(A, 1)], [record(A, 2), record(A, 3)]), kept)
    assert ranges(cluster).read_new(0, 0, -1, kept) == (0, 4)
    assert kept.takes == [[0, 1], [2, 3]]
    assert cluster.events == [("asked", 1), ("answered", 2)]


def test_an_error_after_some_records_ends_the_range_there_and_comes_again_at_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(readers, "LAST_RECORDS", 0)
    failed = kafka.KafkaError.INVALID_MSG
    takes = [[record(A, 0), record(A, 1)], [error(A, 2, failed)], [error(A, 2, failed)]]
    kept = Kept(at_once=2)
    cluster = FakeCluster(FakeConsumer(*takes), kept)
    made = ranges(cluster)
    assert made.read_new(0, 0, -1, kept) == (0, 2)
    assert kept.takes == [[0, 1]]
    assert cluster.events == [("asked", 1), ("answered", 1)]
    with pytest.raises(ValueError, match="reading topic 'a', partition 0"):
        made.read_new(0, 2, -1, kept)
    assert kept.takes == [[0, 1]]


def test_what_was_given_of_another_topic_is_told_and_nothing_more_of_it_is_given() -> None:
    kept = Kept()
    cluster = FakeCluster(FakeConsumer([record(A, offset) for offset in range(4)]), kept, "new")
    made = ranges(cluster)
    for _ in range(2):  # the second is the replay of the same batch, which knows the old table
        with pytest.raises(TopicGone, match="topic 'a' was deleted and made anew"):
            made.read_new(0, 0, -1, kept)
    assert kept.takes == [[0, 1, 2, 3]]
    assert len(cluster.events) == 2


def test_a_replay_that_waits_for_records_looks_whether_the_topic_is_another_one() -> None:
    kept = Kept()
    made = ranges(FakeCluster(FakeConsumer([record(A, 0), record(A, 1)]), kept, "new"))
    with pytest.raises(RecordsLost, match="topic 'a' was deleted and made anew"):
        made.read_again(0, Range(0, 4, 4, 0), kept)
