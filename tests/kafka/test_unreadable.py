"""Records that cannot be decoded: they stop the topology, or are left out, or emitted as they are."""

from __future__ import annotations

from typing import Any

import pytest

from stormline import BaseTransactionalBolt, Fields, ICommitter, InProcessCluster, TransactionalTopologyBuilder
from stormline.errors import UnreadableRecord
from stormline.spouts.kafka import Json, KafkaTransactionalSpout
from tests.kafka.conftest import Open
from tests.services.kafka_broker import Kafka

RECORDS = [b'{"n": 1}', b"{", b'{"m": 2}', b'{"n": 3}', None, b'{"n": 4}', b'{"n": "x"}', b'{"n": 5}']
TYPED = Json({"n": int})


def written(kafka: Kafka) -> str:
    topic = kafka.topic()
    producer = kafka.producer()
    for value in RECORDS:
        producer.produce(topic, value, b"key")
    assert producer.flush(60) == 0
    return topic


@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
def test_the_topology_stops_and_names_the_record(kafka: Kafka, kind: Any, open_spout: Open, columnar: bool) -> None:
    spout = open_spout(kind, written(kafka), ["n"], columnar, value=TYPED)
    with pytest.raises(UnreadableRecord, match=r"topic '.*', partition 0, offset 1: .*pass on_unreadable='skip'"):
        spout.all()


@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
def test_they_are_left_out_logged_and_counted(
    kafka: Kafka, kind: Any, open_spout: Open, columnar: bool, caplog: pytest.LogCaptureFixture
) -> None:
    spout = open_spout(kind, written(kafka), ["n"], columnar, value=TYPED, on_unreadable="skip")
    assert spout.all() == [1, 3, 4, 5]
    assert spout.counted("unreadable") == 4
    assert "4 records cannot be read, and are left out; the first: offset 1: " in caplog.text
    assert spout.again(0) == [1, 3, 4, 5]


@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
def test_they_are_emitted_to_a_stream_of_their_own_as_they_are(
    kafka: Kafka, kind: Any, open_spout: Open, columnar: bool
) -> None:
    topic = written(kafka)
    spout = open_spout(kind, topic, ["n"], columnar, value=TYPED, on_unreadable="emit")
    assert spout.all() == [1, 3, 4, 5]
    letters = spout.batches[0].collected.others["unreadable"]
    assert [letter[:3] + letter[4:6] for letter in letters] == [[topic, 0, i, b"key", RECORDS[i]] for i in (1, 2, 4, 6)]
    assert all(isinstance(letter[3], int) for letter in letters)
    assert letters[2][6] == "it has no value, so no field 'n'"


def test_a_missing_field_is_told_or_has_its_default(kafka: Kafka, kind: Any, open_spout: Open) -> None:
    topic = kafka.topic()
    kafka.write(topic, [b'{"n": 1}', b"{}", b"[]"])
    spout = open_spout(kind, topic, ["n"], value=Json(), on_unreadable="emit")
    assert spout.all() == [1]
    problems = [letter[6] for letter in spout.batches[0].collected.others["unreadable"]]
    assert problems == ["its value has no field 'n'", "its value has no field 'n'"]
    assert open_spout(kind, topic, ["n"], value=Json(), defaults={"n": 0}).all() == [1, 0, 0]


class Letters(BaseTransactionalBolt, ICommitter):
    stored: list[Any] = []  # noqa: RUF012

    def prepare(self, conf: Any, context: Any, collector: Any, attempt: Any) -> None:
        self.kept: list[Any] = []

    def execute(self, tup: Any) -> None:
        self.kept.append(tup.get_value_by_field("value"))

    def finish_batch(self) -> None:
        self.stored.extend(self.kept)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("id"))


def test_a_committer_that_listens_to_the_stream_gets_them_once(kafka: Kafka) -> None:
    Letters.stored.clear()
    topic = written(kafka)
    spout = KafkaTransactionalSpout(kafka.servers, topic, ["n"], value=TYPED, on_unreadable="emit")
    builder = TransactionalTopologyBuilder("letters", "spout", spout)
    builder.set_bolt("letters", Letters()).global_grouping("spout", "unreadable")
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("letters", {}, builder.build_topology())
        handle.await_drained(timeout_secs=60)
        counted = handle.metrics()["spout"]["unreadable"]
    assert Letters.stored == [RECORDS[i] for i in (1, 2, 4, 6)]
    assert counted == 4
