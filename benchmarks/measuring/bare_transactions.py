"""Bare transactions: confluent-kafka alone, one transaction of Kafka after another, each of a few records."""

from __future__ import annotations

import time

TIMEOUT_SECS = 60.0


class BareTransactions:
    """A transactional producer, which writes as fast as it can: no ledger, no fence, nothing between two commits."""

    def __init__(self, servers: str, topic: str) -> None:
        from confluent_kafka import Producer

        self._topic = topic
        self._producer = Producer({"bootstrap.servers": servers, "transactional.id": "bare"})
        self._producer.init_transactions(TIMEOUT_SECS)

    def run(self, transactions: int, values: list[bytes]) -> float:
        """Commit transactions, each of all values; return the seconds it took."""
        producer, topic = self._producer, self._topic
        begun = time.perf_counter()
        for _ in range(transactions):
            producer.begin_transaction()
            for value in values:
                producer.produce(topic, value)
            producer.commit_transaction(TIMEOUT_SECS)
        return time.perf_counter() - begun
