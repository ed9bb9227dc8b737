"""How a Kafka sink is declared; what it does is tried with a broker, in tests/kafka."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from stormline import Semantic, TwoPhaseCommitArrowBolt, TwoPhaseCommitBolt
from stormline.errors import InvalidComponent, InvalidKafkaSink
from stormline.state.kafka import KafkaSink, KafkaTwoPhaseSink


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"servers": " "}, "servers is ' ', expected text such as 'host1:9092,host2:9092'"),
        ({"servers": ["host:9092"]}, r"servers is \['host:9092'\], expected text"),
        ({"ledger": None}, "ledger is None, expected the name of a topic, or ''"),
        ({"timeout_secs": 0}, "timeout_secs is 0, expected a number of seconds, more than 0"),
        ({"timeout_secs": True}, "timeout_secs is True"),
        ({"client": [("linger.ms", 0)]}, "client is a list, expected a dict of settings"),
        (
            {"client": {"transactional.id": "x"}},
            "holds 'transactional.id', which is set by the sink itself: it is",
        ),
        ({"client": {"acks": 1}}, "'acks', which is set by the sink itself: transactions need all"),
        (
            {"client": {"sasl.password": "hunter2"}},
            "'sasl.password' with a value that is not shown here, expected",
        ),
        ({"client": {"ssl.key.pem": "-----"}}, r"'ssl\.key\.pem' with a value that is not shown here"),
    ],
)
def test_a_sink_that_cannot_be_is_told_and_no_secret_is(how: Any, why: str) -> None:
    with pytest.raises(InvalidKafkaSink, match=why) as told:
        KafkaSink(**{"servers": "host:9092", **how})
    assert "hunter2" not in str(told.value)


def test_equal_sinks_are_one_and_travel() -> None:
    one = KafkaSink("host:9092", client={"sasl.password": "env:PASSWORD", "linger.ms": 0})
    same = KafkaSink("host:9092", client={"linger.ms": 0, "sasl.password": "env:PASSWORD"})
    assert one == same == pickle.loads(pickle.dumps(one))
    assert hash(one) == hash(same)
    assert copy.deepcopy(one) is one
    assert one != KafkaSink("host:9092", client={"linger.ms": 5})
    assert str(one) == "kafka:host:9092"


def test_a_ledger_is_named_after_the_topology_unless_it_has_a_name_and_must_be_a_topics() -> None:
    assert KafkaSink("host:9092").ledger_of("words") == "stormline-ledger-words"
    assert KafkaSink("host:9092", ledger="mine").ledger_of("words") == "mine"
    with pytest.raises(InvalidKafkaSink, match=r"the ledger 'l+' has 250 characters, at most 249 .*ledger='…'"):
        KafkaSink("host:9092", ledger="l" * 250).ledger_of("words")


USE = (
    r"Use KafkaCommitter\(KafkaSink\('host:9092'\), '{}', value=…, key=…\) as the bolt: it writes each transaction, "
    "at the commit,"
)


def test_who_looks_for_flinks_two_phase_sink_is_told_why_there_is_none_and_what_to_use() -> None:
    why = r"^KafkaTwoPhaseSink\('host:9092', 'orders'\): Kafka has no prepared transaction that outlives its producer: "
    with pytest.raises(InvalidKafkaSink, match=why + ".*" + USE.format("orders")):
        KafkaTwoPhaseSink("host:9092", "orders", transactional_id_prefix="orders", timeout_ms=900_000)


@pytest.mark.parametrize("bolt", [TwoPhaseCommitBolt, TwoPhaseCommitArrowBolt])
@pytest.mark.parametrize("semantic", Semantic)
def test_a_kafka_sink_behind_a_two_phase_bolt_is_refused_with_the_committer_to_use(bolt: Any, semantic: Any) -> None:
    """Flink calls its own a KafkaSink, too."""
    why = "^a TwoPhaseCommitBolt got kafka:host:9092: Kafka has no prepared transaction"
    with pytest.raises(InvalidComponent, match=why + ".*" + USE.format("topic")):
        bolt(KafkaSink("host:9092"), semantic)
