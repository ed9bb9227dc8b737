"""What both spouts give of ordinary topics: each record in one batch, and the same batch again."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from stormline import InProcessCluster
from stormline.errors import InvalidKafkaSpout, TopicMissing
from stormline.spouts.kafka import Json, KafkaTransactionalSpout, Text
from tests.kafka.conftest import Open
from tests.kafka.topologies import STORED, begin_anew, drain
from tests.services.kafka_broker import Kafka


def texts(partition: int, count: int, first: int = 0) -> list[bytes]:
    return [b"%d-%d" % (partition, i) for i in range(first, first + count)]


@pytest.fixture
def three(kafka: Kafka) -> str:
    """A topic of three partitions, with 25 records in each."""
    topic = kafka.topic(3)
    for partition in range(3):
        kafka.write(topic, texts(partition, 25), partition)
    return topic


def test_a_topology_gets_every_record_once_though_batches_are_replayed(kafka: Kafka, three: str, kind: Any) -> None:
    begin_anew()
    cluster = InProcessCluster()
    spout = kind(kafka.servers, three, ["value", "partition", "offset"], value=Text(), records_per_partition=10)
    expected = [[f"{p}-{i}", p, i] for p in range(3) for i in range(25)]
    assert sorted(drain(spout, 2, cluster)) == sorted(expected)
    assert sorted(STORED) == [1, 2, 3]
    kafka.write(three, texts(1, 5, 25), 1)
    assert sorted(drain(spout, 2, cluster)) == sorted(expected + [[f"1-{i}", 1, i] for i in range(25, 30)])


def test_batches_hold_so_many_records_of_a_partition_and_come_again_as_they_were(
    three: str, kind: Any, open_spout: Open
) -> None:
    spout = open_spout(kind, three, records_per_partition=10)
    batches = []
    while spout.ready():
        batches.append(spout.next())
    assert [len(batch) for batch in batches] == [30, 30, 15]
    assert sorted(row for batch in batches for row in batch) == sorted(row for p in range(3) for row in texts(p, 25))
    for number in (2, 0, 1, 1):
        assert spout.again(number) == batches[number]
    spout.restart()
    assert [spout.again(number) for number in range(3)] == batches
    assert not spout.ready()


def test_a_batch_ends_with_the_record_that_reaches_the_cap_in_bytes(kafka: Kafka, kind: Any, open_spout: Open) -> None:
    topic = kafka.topic()
    kafka.write(topic, [(b"key", b"x" * 97)] * 10 + [b"y" * 5000])
    spout = open_spout(kind, topic, bytes_per_partition=250)
    batches = []
    while spout.ready():
        batches.append(spout.next())
    assert [len(batch) for batch in batches] == [3, 3, 3, 2]
    assert [spout.again(number) for number in range(4)] == batches


def test_all_parts_of_a_record_can_be_fields(kafka: Kafka, kind: Any, open_spout: Open) -> None:
    topic = kafka.topic()
    producer = kafka.producer()
    producer.produce(topic, b'{"word": "cat"}', b"k", headers=[("a", b"1"), ("a", None)], timestamp=1_700_000_000_123)
    producer.produce(topic, b'{"word": "dog", "count": 2}', timestamp=1_700_000_000_124)
    producer.flush(60)
    fields = ["key", "value", "headers", "timestamp", "topic", "partition", "offset"]
    spout = open_spout(kind, topic, fields)
    assert spout.all() == [
        [b"k", b'{"word": "cat"}', [("a", b"1"), ("a", None)], 1_700_000_000_123, topic, 0, 0],
        [None, b'{"word": "dog", "count": 2}', [], 1_700_000_000_124, topic, 0, 1],
    ]
    named = {"id": "key", "word": "value.word", "n": "value.count", "at": "offset"}
    spout = open_spout(kind, topic, named, key=Text(), value=Json(), defaults={"n": 1})
    assert spout.all() == [["k", "cat", 1, 0], [None, "dog", 2, 1]]


def test_rows_and_record_batches_hold_the_same(kafka: Kafka, kind: Any, open_spout: Open) -> None:
    topic = kafka.topic()
    kafka.write(topic, [(b"k%d" % i, b'{"word": "w%d", "n": %d, "x": 1, "b": null}' % (i, i)) for i in range(50)])
    types = {"word": str, "n": int, "x": float, "b": bool | None}
    fields = ["word", "n", "x", "b", "key", "timestamp", "topic", "partition", "offset"]
    how: dict[str, Any] = {"value": Json(types), "key": Text()}
    as_rows, as_columns = (open_spout(kind, topic, fields, columnar, **how) for columnar in (False, True))
    rows = as_rows.all()
    assert as_columns.all() == rows
    assert rows[3][:5] == ["w3", 3, 1.0, None, "k3"]
    assert not as_rows.batches[0].collected.batches
    (batch,) = as_columns.batches[0].collected.batches
    kinds = ["string", "int64", "double", "bool", "string", "int64", "string", "int64", "int64"]
    assert [str(field.type) for field in batch.schema] == kinds
    assert open_spout(kind, topic, ["value"], columnar=True).all() == open_spout(kind, topic, ["value"]).all()


def test_several_topics_and_patterns_are_read_side_by_side(kafka: Kafka, kind: Any, open_spout: Open) -> None:
    one, logs = kafka.topic(2), [kafka.topic(name=f"{kind.__name__}-logs-{i}") for i in range(2)]
    for topic in (one, *logs):
        kafka.write(topic, [topic.encode()])
    spout = open_spout(kind, [one, re.compile(rf"{kind.__name__}-logs-\d")])
    assert sorted(spout.all()) == sorted(topic.encode() for topic in (one, *logs))


def test_topics_and_partitions_that_come_later_are_found_and_keep_their_numbers(
    kafka: Kafka, kind: Any, open_spout: Open
) -> None:
    from confluent_kafka.admin import NewPartitions  # type: ignore[attr-defined]

    prefix = f"{kind.__name__}-grows"
    first = kafka.topic(name=f"{prefix}-b")
    kafka.write(first, [b"1"])
    spout = open_spout(kind, re.compile(rf"{prefix}-."), ["value", "topic", "partition"], start="latest")
    assert spout.all() == []
    kafka.write(first, [b"2"])
    assert spout.all() == [[b"2", first, 0]]
    earlier = kafka.topic(name=f"{prefix}-a")  # before the other by its name
    kafka.write(earlier, [b"3"])
    assert spout.all() == [[b"3", earlier, 0]]  # all of it, though the start is the latest
    for grown in kafka.admin.create_partitions([NewPartitions(first, 2)]).values():
        grown.result()
    producer = kafka.producer()
    producer.produce(first, b"4", partition=1)
    assert producer.flush(60) == 0
    assert spout.until(1) == [[b"4", first, 1]]
    spout.restart()
    for number, batch in enumerate(spout.batches):
        assert spout.again(number) == batch.rows
    kafka.write(first, [b"5"])
    assert spout.all() == [[b"5", first, 0]]


def test_a_topology_begins_where_it_is_told(kafka: Kafka, kind: Any, open_spout: Open) -> None:
    topic = kafka.topic(2)
    producer = kafka.producer()
    for i in range(10):
        producer.produce(topic, b"%d" % i, partition=0, timestamp=1_700_000_000_000 + 1000 * i)
    producer.produce(topic, b"one", partition=1, timestamp=1_700_000_000_000)
    assert producer.flush(60) == 0
    at = datetime.fromtimestamp(1_700_000_006.5, UTC)
    assert open_spout(kind, topic, start=at).all() == [b"7", b"8", b"9"]
    assert open_spout(kind, topic, start={(topic, 0): 8}).all() == [b"8", b"9", b"one"]
    latest = open_spout(kind, topic, start="latest")
    assert latest.all() == []
    kafka.write(topic, [b"new"])
    latest.restart()
    assert latest.all() == [b"new"]


def test_what_came_between_the_start_at_the_latest_and_the_first_batch_is_not_lost_by_a_replay(
    kafka: Kafka, kind: Any, open_spout: Open
) -> None:
    topic = kafka.topic()
    kafka.write(topic, [b"before"])
    spout = open_spout(kind, topic, start="latest")
    assert spout.ready()
    described = spout.coordinator.describe_partitions(None)
    kafka.write(topic, [b"between"])
    spout.coordinator.resume_partitions(described)
    assert spout.next() == [b"between"]


def test_a_topic_that_does_not_exist_is_told(kind: Any, open_spout: Open) -> None:
    with pytest.raises(TopicMissing, match=r"topic 'no-such' does not exist at 127.*create it, correct the name, or"):
        open_spout(kind, "no-such").until(1)
    assert not open_spout(kind, re.compile("no-such-.*")).ready()


def test_a_spout_of_an_empty_topic_is_not_ready(kafka: Kafka, kind: Any, open_spout: Open) -> None:
    assert not open_spout(kind, kafka.topic(2)).ready()


def test_arguments_are_checked_when_the_spout_is_made() -> None:
    with pytest.raises(InvalidKafkaSpout, match=r"start is 'earlyest', expected.*did you mean 'earliest'"):
        KafkaTransactionalSpout("host:9092", "t", ["value"], start="earlyest")
