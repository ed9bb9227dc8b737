"""kill -9 of a real driver, on Spark, between transactions of Kafka's that abort: each committed record counts once."""

from __future__ import annotations

import random
import sqlite3
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.driver_process import DriverProcess
from tests.services.kafka_broker import Kafka

pytestmark = pytest.mark.proof

RECORDS = 100_000
IN_A_TRANSACTION = 250
PARTITIONS = 4
KILLS = 5
LIFE_SECS = 240.0


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


def total(database: Path) -> tuple[int, ...]:
    """Return rows, their sum, the sum of their squares, and the last transaction."""
    with closing(sqlite3.connect(database, timeout=20)) as db:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'total'").fetchone():
            return (0, 0, 0, 0)
        found = db.execute("SELECT rows, sum, squares, txid FROM total").fetchone()
        return tuple(found or (0, 0, 0, 0))


def has_counted(database: Path, txid: int) -> bool:
    """Return whether a transaction is stored."""
    return total(database)[3] >= txid


@pytest.mark.parametrize("opaque", ["", "yes"], ids=["idempotent", "opaque"])
def test_exactly_the_committed_records_are_counted_though_the_driver_is_killed_on_the_way(
    kafka: Kafka, tmp_path: Path, opaque: str
) -> None:
    topic, stay = written(kafka)
    database = tmp_path / "count.sqlite"
    env = {
        "KAFKA_COUNT_SERVERS": kafka.servers,
        "KAFKA_COUNT_TOPIC": topic,
        "KAFKA_COUNT_DB": str(database),
        "KAFKA_COUNT_OPAQUE": opaque,
    }
    rng = random.Random(15)
    drivers: list[DriverProcess] = []

    def start() -> DriverProcess:
        drivers.append(DriverProcess("tests.topologies.kafka_count", tmp_path / "state", tmp_path / "output", env))
        return drivers[-1]

    def output() -> Any:
        return (tmp_path / "output").read_text(errors="replace")[-4000:]

    try:
        for _ in range(KILLS):
            driver = start()
            enough = total(database)[3] + rng.randint(1, 8)
            assert driver.wait_until(partial(has_counted, database, enough), LIFE_SECS), output()
            time.sleep(rng.uniform(0, 0.2))
            driver.kill()
            rows, _, _, txid = total(database)
            print(f"killed after transaction {txid}, {rows} records")
            assert rows < len(stay), "all was counted before the last kill: there must be more records"
        assert start().end(LIFE_SECS) == 0, output()
    finally:
        for driver in drivers:
            driver.close()
    assert total(database)[:3] == (len(stay), sum(stay), sum(number * number for number in stay))
