"""What a Kafka sink cannot write, and what becomes of it: a replay, or a sentence that stops the topology."""

from __future__ import annotations

import threading
from datetime import datetime
from typing import Any

import pytest

from stormline.errors import (
    InvalidKafkaSink,
    KafkaFailed,
    RecordRefused,
    StoreFailed,
    StoreUnavailable,
    TopicMissing,
)
from stormline.state.kafka import KafkaSink
from stormline.state.kafka.ledger import Ledger
from tests.kafka.drivers import Drivers, driver, sink, topic
from tests.kafka.output import is_settled, sends, values
from tests.kits.components import eventually
from tests.kits.stores import CommitFailed
from tests.services.kafka_broker import Kafka

__all__ = ["driver", "sink", "topic"]


def test_a_topic_that_is_not_there_stops_the_topology(kafka: Kafka, sink: KafkaSink, driver: Drivers) -> None:
    with pytest.raises(TopicMissing, match=r"writing to topic 'none': .*; create the topic, or correct its name"):
        driver().commit(1, sends(sink, "none", b"1"))


def test_a_topic_that_the_brokers_come_to_know_of_a_moment_later_is_written(
    kafka: Kafka, sink: KafkaSink, driver: Drivers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a broker has died: the one that is asked next may know less."""
    monkeypatch.setattr("stormline.state.kafka.producer.APPEARS_SECS", 60.0)
    name = kafka.free_name()
    makes = threading.Timer(0.5, kafka.topic, kwargs={"name": name})
    makes.start()
    driver().commit(1, sends(sink, name, b"1"))
    makes.join()
    assert values(kafka, name) == [b"1"]


def test_a_record_that_is_too_large_stops_the_topology_whoever_says_so(
    kafka: Kafka, topic: str, sink: KafkaSink, driver: Drivers
) -> None:
    small = kafka.topic(max_message_bytes="1000")
    with pytest.raises(RecordRefused, match=rf"writing to topic '{topic}': .*too large; .*max\.message\.bytes"):
        driver().commit(1, sends(sink, topic, b"x" * 2_000_000))
    with pytest.raises(CommitFailed, match=rf"ProduceRequest for {small} .*too large.*max\.message\.bytes") as failed:
        driver().commit(1, sends(sink, topic, b"good"), sends(sink, small, b"x" * 5000))
    assert failed.value.failure.fatal
    assert (values(kafka, topic), values(kafka, small)) == ([], [])


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"partition": 1}, "a record is for partition 1, and the topic has 1"),
        ({"partition": -1}, "a record is for partition -1, and the topic has 1"),
        ({"timestamp": 0}, "has the timestamp 0, expected ms since 1970 of at least 1, or a datetime with a time zone"),
        ({"timestamp": datetime(2024, 1, 1)}, r"has the timestamp datetime.*with a time zone"),
        ({"headers": [("a", 1)]}, r"writing to topic .*: expected header value to be None, binary, or unicode"),
        ({"key": 7}, r"writing to topic .*: .*int"),
    ],
)
def test_what_is_no_record_stops_the_topology(
    kafka: Kafka, topic: str, sink: KafkaSink, driver: Drivers, more: Any, why: str
) -> None:
    with pytest.raises(RecordRefused, match=why):
        driver().commit(1, sends(sink, topic, b"v", **more))
    assert values(kafka, topic) == []


def test_an_error_that_a_bolt_catches_fails_the_transaction_all_the_same(
    kafka: Kafka, topic: str, sink: KafkaSink, driver: Drivers
) -> None:
    def catches(context: Any, attempt: Any) -> None:
        transaction = sink.in_commit(context, attempt)
        with pytest.raises(RecordRefused):
            transaction.send(topic, b"v", partition=7)

    with pytest.raises(CommitFailed, match="partition 7"):
        driver().commit(1, sends(sink, topic, b"before"), catches)
    assert values(kafka, topic) == []


def test_a_transaction_that_has_ended_takes_no_record(topic: str, sink: KafkaSink, driver: Drivers) -> None:
    kept: list[Any] = []
    process = driver()
    process.commit(1, lambda context, attempt: kept.append(sink.in_commit(context, attempt)))
    with pytest.raises(StoreFailed, match=r"was used after the commit of 1:1 had ended; send only within the calls"):
        kept[0].send(topic, b"late")


def test_a_commit_on_an_executor_is_refused(topic: str, sink: KafkaSink, driver: Drivers) -> None:
    with pytest.raises(InvalidKafkaSink, match=r"out:0/2 writes to kafka:.*topology.commit.placement=driver"):
        driver().commit(1, sends(sink, topic, b"1"), scope="out:0/2")


# ---------------------------------------------------------------------------------------- the brokers' bad days


def test_a_queue_that_is_full_is_waited_for(kafka: Kafka, topic: str, driver: Drivers) -> None:
    narrow = KafkaSink(kafka.servers, timeout_secs=60, client={"queue.buffering.max.messages": 10})
    sent = [b"%d" % i for i in range(500)]
    driver().commit(1, sends(narrow, topic, *sent))
    assert values(kafka, topic) == sent


def test_a_transaction_that_took_too_long_is_aborted_by_the_broker_and_replayed(
    kafka: Kafka, topic: str, driver: Drivers
) -> None:
    hasty = KafkaSink(kafka.servers, timeout_secs=60, client={"transaction.timeout.ms": 1000, "linger.ms": 0})
    process = driver()
    process.commit(1, sends(hasty, topic, b"1"))
    eventually(lambda: is_settled(kafka, topic), 60)

    def outlives(context: Any, attempt: Any) -> None:
        eventually(lambda: not is_settled(kafka, topic), 60)
        eventually(lambda: is_settled(kafka, topic), 60)

    with pytest.raises(CommitFailed, match=r"transaction\.timeout\.ms") as failed:
        process.commit(2, sends(hasty, topic, b"late"), outlives)
    assert not failed.value.failure.fatal
    process.commit(2, sends(hasty, topic, b"2"))
    assert values(kafka, topic) == [b"1", b"2"]


def test_brokers_that_are_not_there_are_a_replay(topic: str, driver: Drivers) -> None:
    nobody = KafkaSink("127.0.0.1:1", timeout_secs=0.5)
    with pytest.raises(StoreUnavailable, match=r"kafka:127.0.0.1:1: beginning as a producer: .*the batch is replayed"):
        driver().commit(1, sends(nobody, topic, b"1"))


def test_what_a_client_may_not_be_set_to_is_told(topic: str, kafka: Kafka, driver: Drivers) -> None:
    wrong = KafkaSink(kafka.servers, client={"linger.sm": 1})
    with pytest.raises(KafkaFailed, match=r"making a producer: _INVALID_ARG: .*linger\.sm.*answered in the same way"):
        driver().commit(1, sends(wrong, topic, b"1"))
    long = KafkaSink(kafka.servers, timeout_secs=60, client={"transaction.timeout.ms": 3_600_000})
    with pytest.raises(KafkaFailed, match="INVALID_TRANSACTION_TIMEOUT"):
        driver().commit(1, sends(long, topic, b"1"))


def test_a_producer_that_was_fenced_takes_nothing_more(
    kafka: Kafka, topic: str, sink: KafkaSink, driver: Drivers
) -> None:
    begun = driver().begin(1)
    transaction = sink.in_commit(begun, begun.attempt)
    driver(epoch=2).commit(1, sends(sink, topic, b"1"))
    told: list[str] = []

    def ended() -> bool:
        try:
            transaction.send(topic, b"never")
        except StoreUnavailable as error:
            told.append(str(error))
        return len(told) > 1

    eventually(ended, 60)
    begun.participants.abort()
    assert "_FENCED" in told[0]
    assert f"the producer 'stormline-ledger-{topic}/{topic}' has ended; the batch is replayed" in told[1]
    assert values(kafka, topic) == [b"1"]


def test_a_ledger_that_is_not_read_to_its_end_in_time_is_a_replay(kafka: Kafka, topic: str, sink: KafkaSink) -> None:
    ledger = Ledger(sink, kafka.topic(cleanup_policy="compact"), "test")
    with pytest.raises(StoreUnavailable, match=r"ledger '.*': read up to offset 0 of 3 within 60 s; the batch is repl"):
        ledger._read_to(3, deadline=0)


def test_a_ledger_that_the_brokers_come_to_know_of_a_moment_later_is_read(kafka: Kafka, sink: KafkaSink) -> None:
    """As where three brokers hear one after another who leads what was just made."""
    ledger = Ledger(sink, kafka.free_name(), "test")
    makes = threading.Timer(0.5, kafka.topic, kwargs={"name": ledger.topic, "cleanup_policy": "compact"})
    makes.start()
    assert ledger.read() == {}
    makes.join()


def test_a_ledger_that_nobody_leads_in_time_is_a_replay(kafka: Kafka) -> None:
    ledger = Ledger(KafkaSink(kafka.servers, timeout_secs=1), kafka.free_name(), "test")
    with pytest.raises(StoreUnavailable, match=rf"ledger '{ledger.topic}': reading it: .*; the batch is replayed"):
        ledger.read()
