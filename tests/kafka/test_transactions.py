"""Records that were written in transactions: those that are committed are read, once, and nothing else is."""

from __future__ import annotations

import random
from typing import Any

from confluent_kafka import Consumer, Message, TopicPartition

from stormline.spouts.kafka.partitions import Place
from stormline.spouts.kafka.reader import RangeReader
from tests.kafka.conftest import Open
from tests.services.kafka_broker import Kafka, in_transaction


def test_of_an_aborted_and_a_committed_transaction_the_second_is_read(
    kafka: Kafka, kind: Any, open_spout: Open
) -> None:
    topic = kafka.topic()
    producer = kafka.producer(f"{topic}-x")
    in_transaction(producer, topic, [b"a", b"b"], commit=False)
    in_transaction(producer, topic, [b"c", b"d"])
    spout = open_spout(kind, topic)
    assert spout.until(2) == [b"c", b"d"]


def test_ranges_that_begin_and_end_in_aborted_records_and_markers_lose_and_double_nothing(
    kafka: Kafka, kind: Any, open_spout: Open
) -> None:
    topic = kafka.topic()
    producer = kafka.producer(f"{topic}-x")
    expected: list[bytes] = []
    for i in range(12):
        values = [b"%d-%d" % (i, j) for j in range(i % 4 + 1)]
        in_transaction(producer, topic, values, commit=i % 3 != 1)
        expected += values if i % 3 != 1 else []
    end = sum(i % 4 + 2 for i in range(12))
    for most in (1, 2, 3, 5, 100):  # every offset is the first and the last of some range
        spout = open_spout(kind, topic, records_per_partition=most)
        assert spout.until(len(expected)) == expected
        assert not spout.all()
        assert spout.positions[0][1] == end
        assert [row for number in range(len(spout.batches)) for row in spout.again(number)] == expected


def test_ranges_without_a_record_are_passed(kafka: Kafka, kind: Any, open_spout: Open) -> None:
    topic = kafka.topic()
    producer = kafka.producer(f"{topic}-x")
    for _ in range(5):
        in_transaction(producer, topic, [b"never"], commit=False)
    spout = open_spout(kind, topic, records_per_partition=3)
    assert spout.all() == []
    in_transaction(producer, topic, [b"at last"])
    assert spout.until(1) == [b"at last"]


def test_an_open_transaction_holds_back_what_comes_after_it_until_it_ends(
    kafka: Kafka, kind: Any, open_spout: Open
) -> None:
    topic = kafka.topic(2)
    producer = kafka.producer(f"{topic}-x")
    kafka.write(topic, [b"before"])
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    producer.flush(60)
    kafka.write(topic, [b"after"])
    kafka.write(topic, [b"beside"], 1)
    spout = open_spout(kind, topic)
    assert sorted(spout.all()) == [b"before", b"beside"]
    assert not spout.ready()
    producer.commit_transaction(60)
    assert spout.until(2) == [b"open", b"after"]
    assert sorted(spout.again(0)) == [b"before", b"beside"]


class Kept:
    """Keeps the offsets of what it takes."""

    at_once = 7

    def __init__(self) -> None:
        self.offsets: list[int] = []

    def take(self, messages: list[Message]) -> None:
        self.offsets += [message.offset() or 0 for message in messages]


def offsets(reader: RangeReader, place: Place, start: int, end: int) -> list[int]:
    kept = Kept()
    assert reader.read(place, start, end, kept) == (len(kept.offsets), end)
    return kept.offsets


def test_any_range_of_any_partition_in_any_order_is_read_exactly(kafka: Kafka) -> None:
    topic = kafka.topic(4)
    rng = random.Random(11)
    producer = kafka.producer(f"{topic}-x")
    for _ in range(40):
        producer.begin_transaction()
        for partition in range(4):
            for _ in range(rng.randrange(30)):
                producer.produce(topic, b"x" * rng.randrange(200), partition=partition)
        if rng.random() < 0.6:
            producer.commit_transaction(60)
        else:
            producer.flush(60)
            producer.abort_transaction(60)
    settings = {
        "bootstrap.servers": kafka.servers, "group.id": topic, "isolation.level": "read_committed",
        "enable.auto.commit": False, "enable.partition.eof": True, "auto.offset.reset": "error",
        "fetch.wait.max.ms": 20,
    }  # fmt: skip
    with Consumer(settings) as consumer:
        places = [Place(topic, partition) for partition in range(4)]
        wanted = [TopicPartition(*place, -1) for place in places]
        ends = {Place(found.topic, found.partition): found.offset for found in consumer.offsets_for_times(wanted)}
        reader = RangeReader(consumer, 30)
        truth = {place: offsets(reader, place, 0, ends[place]) for place in places}
        for _ in range(150):
            place = rng.choice(places)
            start = rng.randrange(ends[place])
            end = rng.randrange(start, ends[place] + 1)
            assert offsets(reader, place, start, end) == [at for at in truth[place] if start <= at < end]
    assert sum(map(len, truth.values())) > 200
