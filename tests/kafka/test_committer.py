"""What committers make of tuples and record batches, in topologies that run in this process."""

from __future__ import annotations

import json
from typing import Any

import pyarrow
import pytest

from stormline import (
    BaseBasicBolt,
    FailedException,
    Fields,
    InProcessCluster,
    MemoryTransactionalSpout,
    TransactionalTopologyBuilder,
)
from stormline.errors import InvalidKafkaSink, RecordRefused, TopologyFailed, UnknownField
from stormline.spouts.kafka import KafkaTransactionalSpout
from stormline.state.kafka import ArrowKafkaCommitter, KafkaCommitter, KafkaSink
from tests.kafka.output import messages, values
from tests.services.kafka_broker import Kafka

BOTH = (KafkaCommitter, ArrowKafkaCommitter)
FAILED: set[tuple[str, int]] = set()


class FailsNowAndThen(BaseBasicBolt):
    """Fails the first attempt of each second transaction, so that all that can be replayed is."""

    def __init__(self, name: str, fields: list[str]) -> None:
        self.name, self.fields = name, fields

    def execute(self, tup: Any, collector: Any) -> None:
        here = self.name, tup[0].transaction_id
        if here[1] % 2 == 0 and here not in FAILED:
            FAILED.add(here)
            raise FailedException("on order")
        collector.emit(tup.values)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("id", *self.fields))


@pytest.fixture
def sink(kafka: Kafka) -> KafkaSink:
    return KafkaSink(kafka.servers, timeout_secs=60, client={"linger.ms": 0})


def run(name: str, spout: Any, fields: list[str], *committers: Any) -> None:
    builder = TransactionalTopologyBuilder(name, "spout", spout)
    builder.set_bolt("fails", FailsNowAndThen(name, fields)).shuffle_grouping("spout")
    for number, committer in enumerate(committers):
        builder.set_bolt(f"out-{number}", committer).global_grouping("fails")
    config = {"topology.max.spout.pending": 4, "topology.message.timeout.secs": 300}
    with InProcessCluster() as cluster:
        cluster.submit_topology(name, config, builder.build_topology()).await_drained(timeout_secs=240)


def rows(*given: Any) -> dict[int, list[Any]]:
    return {0: list(given)}


@pytest.mark.parametrize("kind", BOTH)
def test_each_tuple_is_a_record_once_in_the_order_of_transactions(kafka: Kafka, sink: KafkaSink, kind: Any) -> None:
    topic, copy = kafka.topic(), kafka.topic()
    given = [(b"%d" % i, f"key-{i % 3}") for i in range(40)]
    spout = MemoryTransactionalSpout(rows(*given), Fields("value", "word"), 5)
    run(topic, spout, ["value", "word"], kind(sink, topic, key="word"), kind(sink, copy, value="word"))
    assert [(one.value(), one.key().decode()) for one in messages(kafka, topic)] == given
    assert values(kafka, copy) == [word.encode() for _, word in given]


@pytest.mark.parametrize("kind", BOTH)
def test_fields_say_where_a_record_goes_and_what_it_has(kafka: Kafka, sink: KafkaSink, kind: Any) -> None:
    one, two = kafka.topic(2), kafka.topic(2)
    names = ["to", "n", "word", "part", "at"]
    given = [(one, 1, "a", 1, 1000), (two, 2, None, 0, 2000), (two, 3, "c", 1, 3000)]
    spout = MemoryTransactionalSpout(rows(*given), Fields(*names), 1)
    committer = kind(
        sink,
        topic_field="to",
        value=["n", "word"],
        value_serializer=json.dumps,
        key="n",
        key_serializer=lambda n: n.to_bytes(2),
        partition="part",
        timestamp="at",
    )
    run(one, spout, names, committer)
    [first], [second, third] = messages(kafka, one), messages(kafka, two)
    assert first.value() == b'{"n": 1, "word": "a"}'
    assert (first.key(), first.partition(), first.timestamp()[1]) == (b"\x00\x01", 1, 1000)
    assert (second.value(), second.partition()) == (b'{"n": 2, "word": null}', 0)
    assert (third.value(), third.partition()) == (b'{"n": 3, "word": "c"}', 1)


HEADERS = [[("h", b"x"), ("h", b"y")], [], None]


class Batches(BaseBasicBolt):
    """Emits a record batch whose headers are a column of maps."""

    def execute(self, tup: Any, collector: Any) -> None:
        headers = pyarrow.array(HEADERS, pyarrow.map_(pyarrow.string(), pyarrow.binary()))
        values = pyarrow.array(["a", "b", "c"], pyarrow.large_string())
        collector.emit_batch(pyarrow.RecordBatch.from_arrays([values, headers], ["value", "headers"]))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("id", "value", "headers"))


class Rows(Batches):
    """Emits the same as tuples."""

    def execute(self, tup: Any, collector: Any) -> None:
        for value, headers in zip("abc", HEADERS, strict=True):
            collector.emit([tup[0], value, headers])


@pytest.mark.parametrize(("bolt", "kind"), [(Rows, KafkaCommitter), (Batches, ArrowKafkaCommitter)])
def test_headers_are_pairs_in_a_list_or_a_column_of_maps(kafka: Kafka, sink: KafkaSink, bolt: Any, kind: Any) -> None:
    topic = kafka.topic()
    builder = TransactionalTopologyBuilder(topic, "spout", MemoryTransactionalSpout(rows((1,)), Fields("n"), 1))
    builder.set_bolt("bolt", bolt()).shuffle_grouping("spout")
    builder.set_bolt("out", kind(sink, topic, headers="headers")).global_grouping("bolt")
    with InProcessCluster() as cluster:
        cluster.submit_topology(topic, {}, builder.build_topology()).await_drained(timeout_secs=120)
    found = [(one.value(), one.headers() or None) for one in messages(kafka, topic)]
    assert found == [(b"a", HEADERS[0]), (b"b", None), (b"c", None)]


def test_none_as_value_stays_none_and_is_not_serialized(kafka: Kafka, sink: KafkaSink) -> None:
    topic = kafka.topic()
    spout = MemoryTransactionalSpout(rows(("a", {"n": 1}), ("b", None)), Fields("word", "value"), 2)
    run(topic, spout, ["word", "value"], KafkaCommitter(sink, topic, key="word", value_serializer=json.dumps))
    assert [(one.key(), one.value()) for one in messages(kafka, topic)] == [(b"a", b'{"n": 1}'), (b"b", None)]


def test_from_kafka_to_kafka(kafka: Kafka, sink: KafkaSink) -> None:
    source, target = kafka.topic(2), kafka.topic()
    for partition in (0, 1):
        kafka.write(source, [(b"k%d" % partition, b"%d-%d" % (partition, i)) for i in range(20)], partition)
    spout = KafkaTransactionalSpout(kafka.servers, source, ["key", "value"], records_per_partition=5)
    run(target, spout, ["key", "value"], KafkaCommitter(sink, target, key="key"))
    found = [(one.key(), one.value()) for one in messages(kafka, target)]
    for partition in (0, 1):
        key = b"k%d" % partition
        assert [value for one, value in found if one == key] == [b"%d-%d" % (partition, i) for i in range(20)]
    assert len(found) == 40


# ---------------------------------------------------------------------------------------- what is wrong


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({}, "topic is '' and topic_field is None, expected one of them"),
        ({"topic": "t", "topic_field": "f"}, "topic is 't' and topic_field is 'f', expected one of them"),
        ({"topic": "t", "value": []}, "value names no field, expected at least one"),
        ({"topic": "t", "value": ["a", "b"]}, r"value is \['a', 'b'\], .*value_serializer=json\.dumps"),
        ({"topic": "t", "key": ""}, "the field of key is '', expected the name of a field"),
        ({"topic": "t", "value": [7]}, "the field of value is 7, expected the name of a field"),
    ],
)
def test_a_committer_that_cannot_be_is_told_when_it_is_declared(how: Any, why: str) -> None:
    with pytest.raises(InvalidKafkaSink, match=why):
        KafkaCommitter(KafkaSink("host:9092"), **how)


def test_a_committer_needs_a_sink() -> None:
    with pytest.raises(InvalidKafkaSink, match=r"sink is 'host:9092', expected KafkaSink\('host:9092'\)"):
        KafkaCommitter("host:9092", "topic")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("how", "error", "why"),
    [
        (
            {"value": "n"},
            RecordRefused,
            "component 'out-0': the tuple holds a int as value of a record",
        ),
        ({"key": "n", "key_serializer": float}, RecordRefused, "key_serializer gave a float as key of a record"),
        ({"value": "wrod"}, UnknownField, "'wrod'.*did you mean 'word'"),
    ],
)
def test_a_tuple_that_makes_no_record_stops_the_topology(
    kafka: Kafka, sink: KafkaSink, how: Any, error: type[Exception], why: str
) -> None:
    topic = kafka.topic()
    spout = MemoryTransactionalSpout(rows((1, "a")), Fields("n", "word"), 1)
    with pytest.raises(TopologyFailed, match=rf"{error.__name__}.*{why}"):
        run(topic, spout, ["n", "word"], KafkaCommitter(sink, topic, **{"value": "word", **how}))
    assert values(kafka, topic) == []
