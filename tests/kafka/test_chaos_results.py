"""What the chaos runs see of a topology that writes into Kafka: the checker says no to what is planted there."""

from __future__ import annotations

import json
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.chaos.checker import check
from tests.chaos.design import FROM_KAFKA, INTO_KAFKA, Design
from tests.chaos.kafka import ChaosKafka
from tests.chaos.kafka_feed import ABORTED_ROWS_MAX, KafkaFeed
from tests.chaos.kafka_results import KafkaResults
from tests.chaos.kafka_topics import entries_of, sums_of
from tests.chaos.numbers import MODULUS, Sums, key_of, sums_by_key
from tests.chaos.source import SourceFile
from tests.kafka.output import is_settled, offsets, values
from tests.kits.components import eventually
from tests.services.kafka_broker import Kafka

PARTITIONS, TASKS, ROWS_A_TRANSACTION, TRANSACTIONS = 2, 2, 10, 4
ROWS = ROWS_A_TRANSACTION * TRANSACTIONS

Record = tuple[str, dict[str, Any]]


def design(kafka: Kafka) -> Design:
    return Design(kafka.free_name(), "idempotent", "driver", PARTITIONS, 1, TASKS, source=FROM_KAFKA, sink=INTO_KAFKA)


def as_chaos(kafka: Kafka) -> ChaosKafka:
    """Return the broker of all tests as the chaos runs know theirs."""
    settled = partial(is_settled, kafka)
    found = SimpleNamespace(client=kafka, servers=kafka.servers, quiet=threading.Lock(), starts=0, is_settled=settled)
    return cast(ChaosKafka, found)


def records_of(txid: int) -> list[Record]:
    """Return what a topology writes in a transaction: of keys by task, of ranges by task."""
    first, end = (txid - 1) * ROWS_A_TRANSACTION, txid * ROWS_A_TRANSACTION
    sums: defaultdict[int, Sums] = defaultdict(Sums)
    for n in range(first * PARTITIONS, end * PARTITIONS):
        sums[key_of(n)] = sums[key_of(n)].plus(Sums(1, n, n * n % MODULUS))
    records: list[Record] = []
    for task in range(TASKS):
        whole = Sums()
        for key in sorted(key for key in sums if key % TASKS == task):
            whole = whole.plus(sums[key])
            records.append(("sums", {"txid": txid, "task": task, "key": key, "sums": sums[key]}))
        ranges = [[task, first, end, end - first]]
        records.append(("entries", {"token": [txid, task, 1, txid], "sums": whole, "ranges": ranges}))
    return records


def write(kafka: Kafka, topology: str, transactions: Iterable[list[Record]]) -> None:
    producer = kafka.producer(f"{topology}-sink")
    for records in transactions:
        producer.begin_transaction()
        for topic, value in records:
            name = sums_of(topology) if topic == "sums" else entries_of(topology)
            producer.produce(name, json.dumps(value), str(value.get("key", "")))
        producer.commit_transaction(60)


def found(results: KafkaResults) -> list[str]:
    return check(results.evidence(ROWS, sums_by_key(ROWS * PARTITIONS), TRANSACTIONS, {}))


GOOD = [records_of(txid) for txid in range(1, TRANSACTIONS + 1)]


def test_what_a_right_run_writes_passes_and_transactions_that_became_visible_together_are_counted(kafka: Kafka) -> None:
    one = design(kafka)
    results = KafkaResults(as_chaos(kafka), one)
    write(kafka, one.topology, [GOOD[0], [*GOOD[1], *GOOD[2]], GOOD[3]])
    eventually(lambda: results.look() == (TRANSACTIONS, TRANSACTIONS, ROWS * PARTITIONS))
    assert found(results) == []
    assert results.groups() == Counter({1: 2, 2: 1})


@pytest.mark.parametrize(
    ("transactions", "kind"),
    [
        ([*GOOD, GOOD[3]], "double"),
        ([*GOOD, [record for record in GOOD[3] if record[0] == "sums"]], "double"),
        ([*GOOD, [record for record in GOOD[3] if record[0] == "entries"]], "double"),
        (GOOD[:3], "missing"),
        ([*GOOD[:3], [record for record in GOOD[3] if record[0] == "entries"]], "missing"),
        ([GOOD[0], GOOD[2], GOOD[1], GOOD[3]], "out of order"),
    ],
    ids=["again", "sums again", "entries again", "not there", "sums not there", "exchanged"],
)
def test_what_is_planted_is_found(kafka: Kafka, transactions: list[list[Record]], kind: str) -> None:
    one = design(kafka)
    results = KafkaResults(as_chaos(kafka), one)
    write(kafka, one.topology, transactions)
    wanted = sum(record[0] == "entries" for records in transactions for record in records)
    eventually(lambda: len(results._read.entries) == wanted)
    assert kind in {violation.partition(":")[0] for violation in found(results)}


def test_the_numbers_are_there_once_each_beside_those_of_aborted_transactions(kafka: Kafka, tmp_path: Path) -> None:
    one = design(kafka)
    source = SourceFile(tmp_path / "source.json")
    chaos = as_chaos(kafka)
    feed = KafkaFeed(chaos, source, one)
    try:
        for rows in (100, 250, 400):
            chaos.starts += 1  # as after a crash of the broker's
            source.change(lambda _, rows=rows: {"rows": rows})
            eventually(lambda: feed.rows == rows)  # noqa: B023
    finally:
        feed.stop()
    numbers = [int(value) for value in values(kafka, feed.topic)]
    assert sorted(numbers) == list(range(400 * PARTITIONS))
    assert numbers == sorted(numbers, key=lambda number: (number % PARTITIONS, number))
    assert min(offsets(kafka, feed.topic).values()) >= 400 + ABORTED_ROWS_MAX, "records of an aborted one are between"
