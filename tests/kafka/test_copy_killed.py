"""Kafka to Kafka on Spark: driver, workers and broker are killed fifty times, while a reader watches."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kafka.copying import Copying, schedule
from tests.kafka.output import messages, values
from tests.services.kafka_broker import Kafka, kafka_broker

pytestmark = pytest.mark.proof

DRIVERS, BROKERS, WORKERS = 6, 14, 30


@pytest.fixture
def mortal_kafka() -> Iterator[Kafka]:
    """A broker of its own, which may be killed."""
    with kafka_broker() as made:
        yield made


def test_kafka_to_kafka_with_fifty_kills_holds_each_record_once_and_in_order(
    mortal_kafka: Kafka, tmp_path: Path
) -> None:
    pick = random.Random(15)
    kills = schedule(pick, DRIVERS, BROKERS, WORKERS)
    assert len(kills) == 50
    copying = Copying(mortal_kafka, tmp_path)
    begun = time.monotonic()
    try:
        for what, where in kills:
            if what == "driver":
                copying.kill_driver(where)
            elif what == "broker":
                copying.kill_broker(where, pick.uniform(0, 1.5))
            else:
                copying.kill_worker(pick, where)
            print(f"{time.monotonic() - begun:5.0f} s: {what} {where}; {copying.watcher.count} copied", flush=True)
        copying.finish()
        assert copying.watcher.seen == copying.written
        assert values(mortal_kafka, copying.target) == [value for one in copying.written.values() for value in one]
        ledger = [json.loads(message.value()) for message in messages(mortal_kafka, copying.ledger)]
    finally:
        copying.close()
    txids = [record["txid"] for record in ledger]
    groups = Counter(1 + len(record["earlier"]) for record in ledger)
    print(f"{txids[-1]} transactions; of Kafka's, by how many are in one: {sorted(groups.items())}")
    assert txids == sorted(set(txids))
    assert max(groups) > 1, "transactions that wait for their commits become one"
