"""What the rows over Kafka are made of: the records, the probe, the gate, and what is done without a broker."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from benchmarks.measuring import brokers
from benchmarks.measuring.kafka_probe import RECORD_BYTES, read_of, value_of
from benchmarks.measuring.recorder import NotAvailable
from benchmarks.peers.protocol import word_counts
from benchmarks.topologies.kafka_records import TYPES, records


def test_the_records_have_five_typed_fields_and_their_word_as_key() -> None:
    for key, value in records(1, 50):
        fields = json.loads(value)
        assert {name: type(field) for name, field in fields.items()} == TYPES
        assert fields["word"].encode() == key


def test_each_partition_has_records_of_its_own_and_the_words_that_the_peers_expect() -> None:
    both = [*records(0, 1_000), *records(1, 1_000)]
    assert len({value for _, value in both}) == 2_000
    assert Counter(key.decode() for key, _ in both) == word_counts(0, 2_000)


def test_a_value_of_the_probe_comes_back_with_its_number_and_time_behind_a_letter() -> None:
    value = value_of(123_456, 1_795_395_173_589_000_000)
    assert len(value) == RECORD_BYTES
    assert read_of(b"t" + value) == (123_456, 1_795_395_173_589_000_000)


def test_without_the_jars_of_a_broker_the_rows_are_not_available(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("confluent_kafka", reason="stormline[kafka] is optional")
    monkeypatch.setattr("examples.kafka_broker.jars", lambda: None)
    with pytest.raises(NotAvailable, match="the jars of Kafka are not there: make kafka"):
        brokers.started()
