"""Consecutive transactions of the topology that are one transaction of Kafka's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stormline.errors import StoreFailed, StoreMismatch, StoreUnavailable
from stormline.state.kafka import ArrowKafkaCommitter, KafkaCommitter, KafkaSink
from tests.kafka.drivers import Drivers, driver, sink, topic
from tests.kafka.output import messages, offsets, sends, values
from tests.services.kafka_broker import Kafka

__all__ = ["driver", "sink", "topic"]


def test_a_group_is_one_transaction_in_the_order_of_its_transactions(
    kafka: Kafka, topic: str, sink: KafkaSink, driver: Drivers
) -> None:
    process = driver()
    process.commit_group(sink, 1, *(sends(sink, topic, b"%d-a" % txid, b"%d-b" % txid) for txid in (1, 2, 3)))
    process.commit(4, sends(sink, topic, b"4"))
    assert values(kafka, topic) == [b"1-a", b"1-b", b"2-a", b"2-b", b"3-a", b"3-b", b"4"]
    assert offsets(kafka, topic) == {0: 9}, "a marker for each transaction of Kafka's"
    first, second = (json.loads(message.value()) for message in messages(kafka, f"stormline-ledger-{topic}"))
    assert (first["txid"], first["commit_id"], first["earlier"]) == (3, 7003, [7001, 7002])
    assert (second["txid"], second["commit_id"], second["earlier"]) == (4, 7004, [])


def test_a_group_whose_record_was_lost_is_found_one_by_one_or_as_a_group(
    kafka: Kafka, topic: str, sink: KafkaSink, driver: Drivers
) -> None:
    works = [sends(sink, topic, b"%d" % txid) for txid in (1, 2, 3)]
    driver().commit_group(sink, 1, *works)
    second, third = driver(epoch=2), driver(epoch=3)
    second.commit(1, works[0])
    with pytest.raises(StoreMismatch, match="under another commit id"):
        second.commit(2, works[1], commit_id=99)
    third.commit_group(sink, 2, *works[1:])
    last, _ = third.hold(sink, 3, works[2])
    assert last.stored
    assert last.follow(third.begin(4).token()) is None, "it has to begin anew"
    third.commit_group(sink, 4, sends(sink, topic, b"4"), sends(sink, topic, b"5"))
    assert values(kafka, topic) == [b"1", b"2", b"3", b"4", b"5"]


def fails_after(work: Any) -> Any:
    def both(context: Any, attempt: Any) -> None:
        work(context, attempt)
        raise ZeroDivisionError

    return both


def test_one_that_fails_after_it_has_sent_lets_the_whole_group_be_replayed(
    kafka: Kafka, topic: str, sink: KafkaSink, driver: Drivers
) -> None:
    process = driver()
    with pytest.raises(StoreUnavailable, match=r"2:2 failed, whose records are in one transaction with those before"):
        process.commit_group(sink, 1, sends(sink, topic, b"1"), fails_after(sends(sink, topic, b"never")))
    assert values(kafka, topic) == []
    process.commit(1, sends(sink, topic, b"1"))
    process.commit(2, sends(sink, topic, b"2"))
    assert values(kafka, topic) == [b"1", b"2"]


def test_one_that_fails_before_it_has_sent_leaves_those_before_it(
    kafka: Kafka, topic: str, sink: KafkaSink, driver: Drivers
) -> None:
    process = driver()
    process.commit_group(sink, 1, sends(sink, topic, b"1"), sends(sink, topic), fails_after(sends(sink, topic)))
    process.commit(3, sends(sink, topic, b"3"))
    assert values(kafka, topic) == [b"1", b"3"]


def test_what_was_sent_too_late_stops_the_next_transaction(
    kafka: Kafka, topic: str, sink: KafkaSink, driver: Drivers
) -> None:
    process = driver()
    kept: list[Any] = []
    process.commit(1, lambda context, attempt: kept.append(sink.in_commit(context, attempt)))
    with pytest.raises(StoreFailed, match="was used after the commit of 1:1 had ended"):
        kept[0].send(topic, b"late")
    with pytest.raises(StoreFailed, match="was used after the commit of 1:1 had ended"):
        process.commit(2, sends(sink, topic, b"2"))
    assert values(kafka, topic) == []


def test_committers_say_that_all_their_effects_are_in_their_sink_and_yours_say_it_themselves() -> None:
    class Own(KafkaCommitter):
        pass

    sink = KafkaSink("host:9092")
    assert KafkaCommitter(sink, "topic").effects_in == ArrowKafkaCommitter(sink, "topic").effects_in == sink
    assert Own(sink, "topic").effects_in is None
