"""kill -9 of a real driver, on Spark, between transactions of Kafka's that abort: each committed record counts once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.killed_counts import counted_though_killed
from tests.services.kafka_broker import Kafka

pytestmark = pytest.mark.proof

RECORDS = 100_000
IN_A_TRANSACTION = 250
PARTITIONS = 4
KILLS = 5
PAUSE_SECS = 0.2


def written(kafka: Kafka) -> tuple[str, list[int]]:
    """Write numbers in transactions, every third of which aborts; return the topic, and the numbers that stay."""
    topic = kafka.topic(PARTITIONS)
    producer = kafka.producer(f"{topic}-writer", **{"linger.ms": 5})
    stay: list[int] = []
    for transaction, first in enumerate(range(0, RECORDS, IN_A_TRANSACTION)):
        batch = range(first, first + IN_A_TRANSACTION)
        producer.begin_transaction()
        for number in batch:
            producer.produce(topic, b"%d" % number, partition=number % PARTITIONS)
        if transaction % 3 == 2:
            producer.flush(60)
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)
            stay += batch
    return topic, stay


@pytest.mark.parametrize("opaque", ["", "yes"], ids=["idempotent", "opaque"])
def test_exactly_the_committed_records_are_counted_though_the_driver_is_killed_on_the_way(
    kafka: Kafka, tmp_path: Path, opaque: str
) -> None:
    topic, stay = written(kafka)
    env = {"KAFKA_COUNT_SERVERS": kafka.servers, "KAFKA_COUNT_TOPIC": topic, "KAFKA_COUNT_OPAQUE": opaque}
    counted = counted_though_killed("tests.topologies.kafka_count", tmp_path, env, KILLS, len(stay), PAUSE_SECS)
    assert counted == (len(stay), sum(stay), sum(number * number for number in stay))
