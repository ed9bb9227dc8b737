"""Records that are gone, and topics that are others than before: right, or a sentence, never a silent gap."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from stormline.errors import CompactedTopic, RecordsLost
from stormline.spouts.kafka import KafkaTransactionalSpout, OpaqueKafkaTransactionalSpout
from tests.kafka.conftest import Open
from tests.kits.components import eventually
from tests.services.kafka_broker import Kafka

GO_ON = "pass on_lost='continue' to the spout to go on with what there is"
CANNOT = "must be replayed with exactly these records, so this state cannot go on; begin anew under another topology id"


def numbers(count: int, first: int = 0) -> list[bytes]:
    return [b"%d" % i for i in range(first, first + count)]


def remove_before(kafka: Kafka, topic: str, offset: int) -> None:
    """Let the first records go, as retention does."""
    for removed in kafka.admin.delete_records([TopicPartition(topic, 0, offset)]).values():
        removed.result()


def made_anew(kafka: Kafka, topic: str) -> None:
    """Delete a topic, and make one of the same name."""
    kafka.delete(topic)
    eventually(lambda: not kafka.topic_id(topic), 60)
    kafka.topic(name=topic)


def test_records_that_retention_took_before_they_were_read_are_told(kafka: Kafka, kind: Any, open_spout: Open) -> None:
    topic = kafka.topic()
    kafka.write(topic, numbers(20))
    spout = open_spout(kind, topic, records_per_partition=5)
    assert spout.next_when_ready() == numbers(5)
    remove_before(kafka, topic, 12)
    spout.restart()
    with pytest.raises(RecordsLost, match=rf"topic '{topic}', partition 0: the offsets 5 to 11 are gone.*{GO_ON}"):
        spout.all()


def test_a_gap_is_gone_over_where_the_user_says_so_and_is_logged_and_counted(
    kafka: Kafka, kind: Any, open_spout: Open, caplog: pytest.LogCaptureFixture
) -> None:
    topic = kafka.topic()
    kafka.write(topic, numbers(20))
    spout = open_spout(kind, topic, records_per_partition=5, on_lost="continue")
    assert spout.next_when_ready() == numbers(5)
    remove_before(kafka, topic, 12)
    spout.restart()
    with caplog.at_level(logging.ERROR, "stormline"):
        assert spout.all() == numbers(8, 12)
    assert "the offsets 5 to 11 are gone" in caplog.text
    assert "going on at offset 12" in caplog.text
    assert spout.counted("gaps") == 1


@pytest.mark.parametrize("on_lost", ["stop", "continue"])
def test_a_batch_that_must_come_again_and_is_gone_stops_the_topology(
    kafka: Kafka, kind: Any, open_spout: Open, on_lost: str
) -> None:
    topic = kafka.topic()
    kafka.write(topic, numbers(20))
    spout = open_spout(kind, topic, records_per_partition=5, on_lost=on_lost)
    assert spout.next_when_ready() == numbers(5)
    remove_before(kafka, topic, 3)
    spout.restart()
    with pytest.raises(RecordsLost, match=f"the offsets 0 to 2 are gone.*{CANNOT}"):
        spout.again(0)


def test_an_opaque_batch_that_was_not_fixed_may_go_on_without_what_is_gone(kafka: Kafka, open_spout: Open) -> None:
    topic = kafka.topic()
    kafka.write(topic, numbers(20))
    spout = open_spout(OpaqueKafkaTransactionalSpout, topic, records_per_partition=5, on_lost="continue")
    spout.next_when_ready()
    assert spout.next_when_ready() == numbers(5, 5)
    remove_before(kafka, topic, 8)
    spout.restart()
    assert spout.again(1, frozen=False) == numbers(5, 8)


@pytest.mark.parametrize("count", [2, 30], ids=["shorter", "longer"])
def test_a_topic_that_was_made_anew_is_told_whether_it_is_shorter_or_longer(
    kafka: Kafka, kind: Any, open_spout: Open, count: int
) -> None:
    topic = kafka.topic()
    kafka.write(topic, numbers(10))
    old = kafka.topic_id(topic)
    spout = open_spout(kind, topic, records_per_partition=5)
    assert spout.next_when_ready() == numbers(5)
    made_anew(kafka, topic)
    kafka.write(topic, [b"new"] * count)
    told = rf"topic '{topic}' was deleted and made anew.*of the one with the id {old}, and what had not been read.*"
    with pytest.raises(RecordsLost, match=told + GO_ON):
        spout.all()
    spout.restart()  # what had been received of the old one is given, else
    with pytest.raises(RecordsLost, match=told + GO_ON):  # the emitter finds it by itself, too
        spout.next()
    with pytest.raises(RecordsLost, match=told + CANNOT):
        spout.again(0)


def test_the_records_of_a_topic_made_anew_are_read_from_its_beginning_where_the_user_says_so(
    kafka: Kafka, kind: Any, open_spout: Open, caplog: pytest.LogCaptureFixture
) -> None:
    topic = kafka.topic()
    kafka.write(topic, numbers(10))
    spout = open_spout(kind, topic, records_per_partition=5, on_lost="continue")
    assert spout.next_when_ready() == numbers(5)
    made_anew(kafka, topic)
    kafka.write(topic, [b"new %d" % i for i in range(12)])
    spout.restart()
    assert spout.next() == []  # of a batch that began before the coordinator knew
    with caplog.at_level(logging.ERROR, "stormline"):
        assert spout.until(12) == [b"new %d" % i for i in range(12)]
    assert "was deleted and made anew" in caplog.text
    spout.restart()
    assert spout.all() == []


def test_a_topic_that_was_deleted_is_told(kafka: Kafka, kind: Any, open_spout: Open) -> None:
    topic, other = kafka.topic(), kafka.topic()
    kafka.write(topic, numbers(10))
    stops, goes_on = open_spout(kind, [topic, other]), open_spout(kind, [topic, other], on_lost="continue")
    assert stops.all() == goes_on.all() == numbers(10)
    kafka.delete(topic)
    kafka.write(other, [b"other"])

    with pytest.raises(RecordsLost, match=rf"topic '{topic}' was deleted; .*{GO_ON}"):
        stops.until(100)
    assert goes_on.until(1) == [b"other"]


def test_a_compacted_topic_is_refused_where_every_batch_must_come_again(kafka: Kafka, open_spout: Open) -> None:
    topic = kafka.topic(cleanup_policy="compact")
    kafka.write(topic, [(b"a", b"1"), (b"b", b"2")])
    told = rf"topic '{topic}' has cleanup.policy=compact: .*use OpaqueKafkaTransactionalSpout"
    with pytest.raises(CompactedTopic, match=told):
        open_spout(KafkaTransactionalSpout, topic).ready()
    assert open_spout(OpaqueKafkaTransactionalSpout, topic).all() == [b"1", b"2"]


def test_a_range_that_gives_fewer_records_than_before_is_told(kafka: Kafka, kind: Any, open_spout: Open) -> None:
    topic = kafka.topic()
    kafka.write(topic, numbers(10))
    spout = open_spout(kind, topic)
    spout.next_when_ready()
    start, end, records, epoch = spout.batches[0].partitions[0]
    spout.batches[0].partitions[0] = [start, end, records + 1, epoch]
    with pytest.raises(RecordsLost, match="the offsets 0 to 9 gave 11 records, and now give 10: the topic was"):
        spout.again(0)


@pytest.mark.parametrize("on_lost", ["stop", "continue"])
def test_a_log_that_ends_before_what_was_read_is_told_when_that_is_found_twice(
    kafka: Kafka, kind: Any, open_spout: Open, on_lost: str, caplog: pytest.LogCaptureFixture
) -> None:
    topic = kafka.topic()
    kafka.write(topic, numbers(10))
    spout = open_spout(kind, topic, on_lost=on_lost)
    assert spout.next_when_ready() == numbers(10)
    spout.batches[0].partitions[0] = [90, 100, 10, 0]  # as if the log had had ninety records more
    told = "the log was truncated: it ends at offset 10, and was read up to 100 before; what stood at 10 to 99 was"
    if on_lost == "stop":
        with pytest.raises(RecordsLost, match=told):
            spout.next_twice()
        return
    with caplog.at_level(logging.ERROR, "stormline"):
        assert spout.next_twice() == []
    assert told in caplog.text
    assert spout.counted("gaps") == 1
    kafka.write(topic, [b"after"])
    assert spout.until(1) == [b"after"]
