"""What a Kafka spout can be declared with; no broker is asked."""

from __future__ import annotations

import importlib.util
import re
from datetime import datetime
from typing import Any

import pytest

from stormline import Fields
from stormline.errors import CorruptData, InvalidKafkaSpout, InvalidStream, MissingExtra
from stormline.spouts.kafka import Json, KafkaTransactionalSpout, OpaqueKafkaTransactionalSpout, Text
from stormline.spouts.kafka.partitions import PartitionTable, Place, Range, Run
from stormline.topology.streams import OutputFieldsDeclarer

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"servers": " "}, r"servers is ' ', expected text such as 'host1:9092"),
    ({"topics": []}, r"topics is \[\], expected a name, a pattern"),
    ({"topics": "a b"}, r"topics holds 'a b', expected the name of a topic, or a pattern"),
    ({"topics": re.compile(b"a")}, r"topics holds re\.compile\(b'a'\), a pattern of bytes; expected one of text"),
    ({"fields": "value"}, r"fields is the text 'value', expected a list: \['value'\]"),
    ({"fields": []}, r"fields is empty; name parts of a record"),
    ({"fields": ["ofset"]}, r"fields names 'ofset', .* pass value=Json\(\).*did you mean 'offset'"),
    ({"fields": {"n": "valu"}}, r"fields says that 'n' is 'valu', expected one of .*did you mean 'value'"),
    ({"value": 3}, r"value is 3, expected Text\(\), Json\(\), … or a callable"),
    ({"defaults": {"value": 1}}, r"defaults names 'value', which is no field of the decoded value"),
    ({"start": "earlyest"}, r"start is 'earlyest', expected .*did you mean 'earliest'"),
    ({"start": datetime(2026, 1, 1)}, r"a time without a time zone: give it one"),
    ({"start": {"t": 0}}, r"start holds 't': 0, expected \(topic, partition\): offset"),
    ({"start": {("t", 0): -1}}, r"start holds \('t', 0\): -1, expected"),
    ({"records_per_partition": 0}, r"records_per_partition is 0, expected a whole number of at least 1"),
    ({"bytes_per_partition": 1.5}, r"bytes_per_partition is 1\.5, expected a whole number"),
    ({"on_unreadable": "stops"}, r"on_unreadable is 'stops', expected one of .*did you mean 'stop'"),
    ({"on_lost": "go"}, r"on_lost is 'go', expected one of \('stop', 'continue'\)"),
    ({"discover_secs": 0}, r"discover_secs is 0, expected a number of seconds, more than 0"),
    ({"timeout_secs": True}, r"timeout_secs is True, expected a number of seconds"),
    ({"group_id": None}, r"group_id is None, expected the name of a consumer group"),
    ({"client": {"group.id": "g"}}, r"client holds 'group\.id', which is set by the spout itself: use the argument gr"),
    ({"client": {"isolation.level": "x"}}, r"client holds 'isolation\.level', .* what the spout promises rests on"),
    ({"client": {"sasl.password": "hunter2"}}, r"client holds 'sasl\.password' with a value that is not shown here"),
    ({"client": {"ssl.key.pem": "hunter2"}}, r"client holds 'ssl\.key\.pem' with a value that is not shown here"),
]


@pytest.mark.parametrize(("wrong", "told"), WRONG, ids=[told[:40] for _, told in WRONG])
def test_arguments_that_do_not_go_together_are_told(wrong: dict[str, Any], told: str) -> None:
    right: dict[str, Any] = {"servers": "host:9092", "topics": "t", "fields": ["value"]}
    with pytest.raises(InvalidKafkaSpout, match=told) as raised:
        KafkaTransactionalSpout(**{**right, **wrong})
    assert "hunter2" not in str(raised.value)


def test_the_attempt_is_the_spouts_own_field() -> None:
    with pytest.raises(InvalidStream, match="attempt"):
        KafkaTransactionalSpout("host:9092", "t", {"attempt": "value"})


@pytest.mark.parametrize("kind", [KafkaTransactionalSpout, OpaqueKafkaTransactionalSpout])
def test_fields_and_the_stream_of_what_cannot_be_read_are_declared(kind: Any) -> None:
    declarer = OutputFieldsDeclarer("spout")
    spout = kind("host:9092", ["t", re.compile("l.*")], ["n", "offset"], value=Json(), on_unreadable="emit")
    spout.declare_output_fields(declarer)
    streams = {name: declared.fields for name, declared in declarer.streams.items()}
    assert streams["default"] == Fields("attempt", "n", "offset")
    letter = Fields("attempt", "topic", "partition", "offset", "timestamp", "key", "value", "problem")
    assert streams["unreadable"] == letter
    assert repr(spout) == f"{kind.__name__}('host:9092', ['t', 'l.*'])"


def test_a_missing_client_is_told_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "confluent_kafka" else real(name))
    with pytest.raises(MissingExtra, match=r"needs the package confluent-kafka, .*stormline\[kafka\]"):
        KafkaTransactionalSpout("host:9092", "t", ["value"], value=Text())


def test_numbers_of_partitions_stay_what_they_were_when_more_are_found() -> None:
    table = PartitionTable([Run("b", "B", 0, 2)]).with_runs([Run("a", "A", 0, 1, (7,)), Run("b", "B", 2, 1)])
    assert [table.place(number) for number in range(4)] == [
        Place("b", 0), Place("b", 1), Place("a", 0), Place("b", 2),
    ]  # fmt: skip
    assert [table.start(number) for number in range(4)] == [None, None, 7, None]
    assert PartitionTable.from_metadata(table.to_metadata()).runs == table.runs
    anew = table.with_runs([Run("b", "B2", 0, 1)])
    assert [anew.is_gone(number) for number in range(5)] == [True, True, False, True, False]
    assert anew.numbers() == {Place("a", 0): 2, Place("b", 0): 4}
    assert len(PartitionTable.from_metadata(None)) == 0


@pytest.mark.parametrize(
    "stored", [3, [3], [["t", "T", 0]], [["t", "T", -1, 1, None]], [["t", "T", 0, 2, [1]]], [["t", "T", 0, 1, [-5]]]]
)
def test_a_stored_table_that_is_none_is_told(stored: Any) -> None:
    with pytest.raises(CorruptData, match=r"stored partitions of a Kafka spout are .*expected a list of"):
        PartitionTable.from_metadata(stored)


@pytest.mark.parametrize("stored", [3, [1, 2, 3], [2, 1, 0, 0], [-1, 1, 0, 0], [0, 1, "1", 0]])
def test_a_stored_range_that_is_none_is_told(stored: Any) -> None:
    with pytest.raises(CorruptData, match=r"stored metadata of a Kafka partition is .*expected \[start, end, records"):
        Range.from_metadata(stored)
