"""What a topology writes into Kafka, as a reader of committed records sees it that looks all the time.

Two topics: entries, in one partition, of each committing task one a transaction, with the ranges that reached it; and
sums, in several, of each transaction and key one. No record is left out because it came before: what is there twice
is to be seen by the checker.
"""

from __future__ import annotations

import json
import threading
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from tests.chaos.design import Design
from tests.chaos.evidence import Entry, Evidence, Stored, Taken
from tests.chaos.kafka import ChaosKafka
from tests.chaos.kafka_topics import entries_of, sums_of
from tests.chaos.ledger import Token
from tests.chaos.numbers import Sums
from tests.chaos.processes import wait_until
from tests.chaos.results import Progress, Results
from tests.kafka.output import messages

SUM_PARTITIONS = 3
READ_SECS = 30.0
"""Time for the reader that looks all the time to come to the end, too."""


@dataclass
class Read:
    """What has been read: entries with their offsets, and what else they tell; sums by partition, in their order."""

    entries: list[tuple[int, Entry]] = field(default_factory=list)
    taken: list[Taken] = field(default_factory=list)
    sums: defaultdict[int, list[tuple[int, int, int, Sums]]] = field(default_factory=lambda: defaultdict(list))

    @property
    def count(self) -> int:
        """How many records have been read."""
        return len(self.entries) + sum(map(len, self.sums.values()))

    def add(self, message: Any) -> None:
        """Take in a record."""
        values = json.loads(message.value())
        if "ranges" not in values:
            txid, task, key = values["txid"], values["task"], values["key"]
            self.sums[message.partition()].append((txid, task, key, Sums(*values["sums"])))
            return
        txid, task, epoch, attempt = values["token"]
        self.entries.append((message.offset(), Entry(txid, task, epoch, attempt, Sums(*values["sums"]))))
        self.taken += [Taken(txid, partition, *rows) for partition, *rows in values["ranges"]]


class KafkaResults(Results):
    """Reads from its making on."""

    lags = True

    def __init__(self, kafka: ChaosKafka, design: Design) -> None:
        self._kafka = kafka
        self._design = design
        self._read = Read()
        self._topics = (
            kafka.client.topic(1, entries_of(design.topology)),
            kafka.client.topic(SUM_PARTITIONS, sums_of(design.topology)),
        )
        self._progress = Progress()
        self._stopping = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": kafka.servers,
                "group.id": "results",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )
        entries, sums = self._topics
        self._consumer.assign(
            [TopicPartition(entries, 0, 0), *(TopicPartition(sums, one, 0) for one in range(SUM_PARTITIONS))]
        )
        self._thread = threading.Thread(target=self._look_on, daemon=True, name="kafka-results")
        self._thread.start()

    def look(self) -> Progress:
        return self._progress

    def _look_on(self) -> None:
        by_task: defaultdict[int, int] = defaultdict(int)
        tuples = 0
        while not self._stopping.is_set():
            before = len(self._read.entries)
            for message in self._consumer.consume(500, 0.1):
                if message.error() is None:
                    self._read.add(message)
            for _, entry in self._read.entries[before:]:
                by_task[entry.task] = max(by_task[entry.task], entry.txid)
                tuples += entry.sums.count
            last = [by_task[task] for task in range(self._design.committers)]
            self._progress = Progress(min(last), max(last), tuples)

    def evidence(
        self, rows: int, source: Mapping[int, Sums], committed: int, stores: Mapping[str, Mapping[int, Sums]]
    ) -> Evidence:
        again = Read()
        for topic in self._topics:
            for message in messages(self._kafka.client, topic):
                again.add(message)
        wait_until(lambda: self._read.count >= again.count, READ_SECS)
        self.close()
        state, told = _state(again.sums)
        if (again.entries, again.sums) != (self._read.entries, self._read.sums):
            told.append(
                f"not the same: {len(self._read.entries)} entries were seen meanwhile, {len(again.entries)} "
                "afterwards, or in another order"
            )
        entries = [entry for _, entry in again.entries]
        fence = {entry.task: Token(entry.epoch, entry.txid, entry.attempt) for entry in entries}
        design = self._design
        return Evidence(
            design.partitions, rows, design.committers, source, entries, again.taken, state, fence, committed, stores,
            told=told,
        )  # fmt: skip

    def groups(self) -> Counter[int]:
        return Counter(map(len, _steps(self._read.entries)))

    def close(self) -> None:
        if self._thread.is_alive():
            self._stopping.set()
            self._thread.join()
            self._consumer.close()


def _steps(entries: Sequence[tuple[int, Entry]]) -> list[set[int]]:
    """Return the transactions of each transaction of Kafka's: after each there is a marker, which takes an offset."""
    steps: list[set[int]] = []
    expected = -1
    for offset, entry in entries:
        if offset != expected:
            steps.append(set())
        steps[-1].add(entry.txid)
        expected = offset + 1
    return steps


def _state(
    sums: Mapping[int, Sequence[tuple[int, int, int, Sums]]],
) -> tuple[dict[int, Stored], list[str]]:
    """Return what the sums of each key are together, and where transactions are not in order."""
    state: dict[int, Stored] = {}
    told = []
    for partition, found in sums.items():
        last = 0
        for txid, task, key, more in found:
            if txid < last:
                told.append(f"out of order: transaction {txid} of key {key} after {last}, in partition {partition}")
            last = max(last, txid)
            before = state[key].sums if key in state else Sums()
            state[key] = Stored(task, before.plus(more), txid)
    return state, told
