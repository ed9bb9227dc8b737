"""What a Kafka sink writes: each transaction of the topology once, in one of Kafka's, in the order of txids."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME

from stormline.errors import (
    InvalidKafkaSink,
    LedgerUnusable,
    StoreMismatch,
    StoreUnavailable,
)
from stormline.state.kafka import KafkaSink
from tests.kafka.drivers import Drivers, driver, sink, topic
from tests.kafka.output import is_settled, messages, sends, settings_of, values
from tests.kits.stores import CommitFailed, Process
from tests.services.kafka_broker import Kafka

__all__ = ["driver", "sink", "topic"]


# ---------------------------------------------------------------------------------------- transactions


def test_transactions_are_there_once_and_in_their_order(
    kafka: Kafka, topic: str, sink: KafkaSink, driver: Drivers
) -> None:
    process = driver()
    for txid in range(1, 6):
        process.commit(txid, sends(sink, topic, b"%d-a" % txid, b"%d-b" % txid))
    assert values(kafka, topic) == [b"%d-%s" % (txid, one) for txid in range(1, 6) for one in (b"a", b"b")]


def test_all_that_write_in_one_commit_phase_write_one_transaction_into_several_topics(
    kafka: Kafka, topic: str, sink: KafkaSink, driver: Drivers
) -> None:
    other, same = kafka.topic(3), KafkaSink(kafka.servers, timeout_secs=60, client={"linger.ms": 0})

    def fails(context: Any, attempt: Any) -> None:
        raise ZeroDivisionError

    process = driver()
    work = [sends(sink, topic, b"here"), sends(same, other, b"there", partition=2)]
    with pytest.raises(ZeroDivisionError):
        process.commit(1, *work, fails)
    assert (values(kafka, topic), values(kafka, other)) == ([], [])
    process.commit(1, *work)
    assert (values(kafka, topic), values(kafka, other)) == ([b"here"], [b"there"])


def test_a_record_has_what_it_was_given(kafka: Kafka, topic: str, sink: KafkaSink, driver: Drivers) -> None:
    at = datetime(2024, 2, 29, 12, 30, 0, 5000, tzinfo=UTC)
    process = driver()
    process.commit(
        1,
        sends(sink, topic, b"v", key=b"k", headers=[("a", b"1"), ("a", None), ("b", "text")], timestamp=1234),
        sends(sink, topic, None, key=b"gone", headers={"h": b"x"}, timestamp=at),
        sends(sink, topic, b"", headers=(("t", b"y"),)),
    )
    first, removed, empty = messages(kafka, topic)
    assert (first.key(), first.value()) == (b"k", b"v")
    assert first.headers() == [("a", b"1"), ("a", None), ("b", b"text")]
    assert first.timestamp() == (TIMESTAMP_CREATE_TIME, 1234)
    assert (removed.key(), removed.value(), removed.headers()) == (b"gone", None, [("h", b"x")])
    assert removed.timestamp() == (TIMESTAMP_CREATE_TIME, round(at.timestamp() * 1000))
    assert (empty.key(), empty.value(), empty.headers()) == (None, b"", [("t", b"y")])


def test_a_key_goes_to_the_partition_that_java_gives_it_and_others_where_they_are_told(
    kafka: Kafka, sink: KafkaSink, driver: Drivers
) -> None:
    wide = kafka.topic(10)
    process = driver()
    process.commit(1, *(sends(sink, wide, key, key=key) for key in MURMUR2))
    process.commit(2, *(sends(sink, wide, b"told", key=b"cat", partition=number) for number in (0, 9)))
    placed = [(message.value(), message.partition()) for message in messages(kafka, wide)]
    expected = [(key, (number & 0x7FFFFFFF) % 10) for key, number in MURMUR2.items()]
    assert sorted(placed) == sorted([*expected, (b"told", 0), (b"told", 9)])


MURMUR2 = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536, b"abc": 479470107}
"""As the tests of Kafka's own Utils.murmur2 have it."""


# ---------------------------------------------------------------------------------------- replays


def test_a_replay_of_what_is_there_writes_nothing_and_the_next_one_goes_on(
    kafka: Kafka, topic: str, sink: KafkaSink, driver: Drivers
) -> None:
    """The first driver ends between Kafka's commit and the record; and the second one replays once more."""
    first, second = driver(), driver(epoch=2)
    first.commit(1, sends(sink, topic, b"1"))
    first.commit(2, sends(sink, topic, b"2"))
    assert second.commit(2, sends(sink, topic, b"2"), stored(sink))
    assert second.commit(2, sends(sink, topic, b"2"), stored(sink))
    assert not second.commit(3, sends(sink, topic, b"3"), stored(sink))
    assert values(kafka, topic) == [b"1", b"2", b"3"]


def stored(sink: KafkaSink) -> Any:
    return lambda context, attempt: sink.in_commit(context, attempt).stored


def test_a_transaction_without_a_record_is_known_to_the_ledger(
    kafka: Kafka, topic: str, sink: KafkaSink, driver: Drivers
) -> None:
    process = driver()
    process.commit(1, sends(sink, topic))
    process.commit(2, sends(sink, topic, b"2"))
    assert driver(epoch=2).commit(2, stored(sink))
    assert values(kafka, topic) == [b"2"]


def test_what_a_driver_that_is_gone_left_open_is_aborted_by_the_next_one(
    kafka: Kafka, topic: str, sink: KafkaSink, driver: Drivers
) -> None:
    first = driver()
    first.commit(1, sends(sink, topic, b"1"))
    left = first.begin(2)
    sends(sink, topic, b"2 of the first")(left, left.attempt)
    participant = sink.in_commit(left, left.attempt)
    participant.prepare()
    first.end()
    assert not is_settled(kafka, topic)
    driver(epoch=2).commit(2, sends(sink, topic, b"2 of the second"))
    assert values(kafka, topic) == [b"1", b"2 of the second"]


def test_a_driver_that_was_taken_over_commits_nothing_and_is_stopped(
    kafka: Kafka, topic: str, sink: KafkaSink, driver: Drivers
) -> None:
    zombie, second = driver(), driver(epoch=2)
    zombie.commit(1, sends(sink, topic, b"1"))
    begun = zombie.begin(2)
    sends(sink, topic, b"2 of the zombie")(begun, begun.attempt)
    second.commit(2, sends(sink, topic, b"2"))
    failure = begun.participants.commit(lambda: True)
    assert failure is not None
    assert not failure.fatal
    assert "_FENCED" in failure.message
    assert "another driver that has taken over" in failure.message
    with pytest.raises(StoreMismatch, match=r"stored by epoch 2, attempt 1001, .* another driver has taken over"):
        zombie.commit(2, sends(sink, topic, b"2 of the zombie"))
    # Which fenced the second one, that nobody has taken over: it fails once, and goes on.
    with pytest.raises(CommitFailed, match="_FENCED"):
        second.commit(3, sends(sink, topic, b"3"))
    second.commit(3, sends(sink, topic, b"3"))
    assert values(kafka, topic) == [b"1", b"2", b"3"]


def test_a_zombie_that_is_faster_commits_the_same_batch_which_its_successor_finds(
    kafka: Kafka, topic: str, sink: KafkaSink, driver: Drivers
) -> None:
    zombie, second = driver(), driver(epoch=2)
    zombie.commit(1, sends(sink, topic, b"1"))
    begun = second.begin(2)
    sends(sink, topic, b"2")(begun, begun.attempt)
    with pytest.raises(CommitFailed, match="_FENCED"):
        zombie.commit(2, sends(sink, topic, b"2"))
    zombie.commit(2, sends(sink, topic, b"2"))
    failure = begun.participants.commit(lambda: True)
    assert failure is not None
    assert "_FENCED" in failure.message
    assert second.commit(2, sends(sink, topic, b"2"), stored(sink))
    second.commit(3, sends(sink, topic, b"3"))
    assert values(kafka, topic) == [b"1", b"2", b"3"]


# ---------------------------------------------------------------------------------------- other histories


@pytest.mark.parametrize(
    ("txid", "how", "why"),
    [
        (1, {}, r"ledger '.*', holds transaction 3 .*, and this is transaction 1: .* set back to an older copy"),
        (3, {"commit_id": 99}, r"holds transaction 3 .* under another commit id"),
        (5, {}, r"holds transaction 3 .*, and the next one to commit is 5: .*call store\.adopt\('topic-\d+', 4\)"),
    ],
    ids=["set back", "another history", "behind"],
)
def test_a_ledger_of_another_history_stops_the_topology(
    kafka: Kafka, topic: str, sink: KafkaSink, driver: Drivers, txid: int, how: Any, why: str
) -> None:
    process = driver()
    for one in (1, 2, 3):
        process.commit(one, sends(sink, topic, b"%d" % one))
    with pytest.raises(StoreMismatch, match=why):
        driver(epoch=2).commit(txid, sends(sink, topic, b"never"), **how)
    assert values(kafka, topic) == [b"1", b"2", b"3"]


def test_a_sink_with_which_a_topology_begins_later_is_told_where(
    kafka: Kafka, topic: str, sink: KafkaSink, driver: Drivers
) -> None:
    with pytest.raises(StoreMismatch, match="holds transaction 0 "):
        driver().commit(8, sends(sink, topic, b"8"))
    with pytest.raises(InvalidKafkaSink, match="at transaction -1, expected a number from 0 on"):
        sink.adopt(topic, -1)
    sink.adopt(topic, 7)
    driver().commit(8, sends(sink, topic, b"8"))
    with pytest.raises(InvalidKafkaSink, match=f"holds transaction 8 of topology '{topic}', and is to be adopted at 9"):
        sink.adopt(topic, 9)
    assert values(kafka, topic) == [b"8"]


# ---------------------------------------------------------------------------------------- the ledger


def test_the_ledger_is_made_compacted_in_small_segments_and_holds_the_last_transaction(
    kafka: Kafka, topic: str, sink: KafkaSink, driver: Drivers
) -> None:
    ledger = f"stormline-ledger-{topic}"
    driver().commit(1, sends(sink, topic, b"1"))
    settings = settings_of(kafka, ledger)
    assert settings["cleanup.policy"] == "compact"
    assert settings["segment.bytes"] == str(1 << 20)
    [message] = messages(kafka, ledger)
    assert message.key() == f"{topic}/".encode()
    assert message.value() == b'{"epoch": 1, "txid": 1, "attempt": 1, "commit_id": 7001, "earlier": []}'


def test_topologies_can_share_a_ledger(kafka: Kafka, topic: str, driver: Drivers) -> None:
    sink = KafkaSink(kafka.servers, ledger=kafka.topic(cleanup_policy="compact"), timeout_secs=60)
    other = Process(topology=f"{topic}-other")
    try:
        driver().commit(1, sends(sink, topic, b"1"))
        other.commit(1, sends(sink, topic, b"other"))
        driver(epoch=2).commit(2, sends(sink, topic, b"2"))
        assert other.commit(1, stored(sink))
    finally:
        other.end()
    assert values(kafka, topic) == [b"1", b"other", b"2"]


def test_a_ledger_that_is_not_compacted_is_refused(kafka: Kafka, topic: str, driver: Drivers) -> None:
    sink = KafkaSink(kafka.servers, ledger=kafka.topic(cleanup_policy="compact,delete"), timeout_secs=60)
    with pytest.raises(LedgerUnusable, match=r"ledger '.*' has cleanup.policy=compact,delete: .*twice; set"):
        driver().commit(1, sends(sink, topic, b"1"))
    assert values(kafka, topic) == []


@pytest.mark.parametrize("value", [b"1 2 3 4", b"{}", b'{"epoch": 1, "txid": 1, "attempt": 1, "commit_id": -1}', None])
def test_a_ledger_that_others_write_to_is_refused(kafka: Kafka, topic: str, driver: Drivers, value: Any) -> None:
    ledger = kafka.topic(cleanup_policy="compact")
    kafka.write(ledger, [(f"{topic}/", value)])
    with pytest.raises(LedgerUnusable, match=rf"ledger '{ledger}', offset 0, holds .*expected an object of epoch, txi"):
        driver().commit(1, sends(KafkaSink(kafka.servers, ledger=ledger, timeout_secs=60), topic, b"1"))


def test_a_ledger_that_an_open_transaction_of_others_holds_back_is_waited_for(
    kafka: Kafka, topic: str, driver: Drivers
) -> None:
    """What is behind it may be ours: to begin without it might write a transaction twice."""
    ledger = kafka.topic(cleanup_policy="compact")
    other = kafka.producer(f"{topic}-other")
    other.begin_transaction()
    other.produce(ledger, b"never", key=b"other")
    other.flush(60)
    short = KafkaSink(kafka.servers, ledger=ledger, timeout_secs=4)
    with pytest.raises(StoreUnavailable, match="a transaction that is open since offset 0 holds back what comes after"):
        driver().commit(1, sends(short, topic, b"1"))
    other.abort_transaction(60)
    driver().commit(1, sends(KafkaSink(kafka.servers, ledger=ledger, timeout_secs=60), topic, b"1"))
    assert values(kafka, topic) == [b"1"]
