"""Bare transactions: confluent-kafka alone, one transaction of Kafka after another, each of a few records."""

from __future__ import annotations

import time

TIMEOUT_SECS = 60.0
LEDGER_VALUE = b'{"epoch": 1, "txid": 1000, "attempt": 1, "commit_id": 12345678901234567890, "earlier": []}'


class BareTransactions:
    """A transactional producer, which writes as fast as it can: no fence, nothing between two commits.

    Args:
        ledger: a topic that gets one more record in each transaction, as ours does; None: there is none.
    """

    def __init__(self, servers: str, topic: str, ledger: str | None = None) -> None:
        from confluent_kafka import Producer

        self._topic = topic
        self._ledger = ledger
        self._producer = Producer({"bootstrap.servers": servers, "transactional.id": f"bare-{topic}"})
        self._producer.init_transactions(TIMEOUT_SECS)

    def run(self, transactions: int, values: list[bytes]) -> float:
        """Commit transactions, each of all values; return the seconds it took."""
        producer, topic, ledger = self._producer, self._topic, self._ledger
        begun = time.perf_counter()
        for _ in range(transactions):
            producer.begin_transaction()
            for value in values:
                producer.produce(topic, value)
            if ledger is not None:
                producer.produce(ledger, LEDGER_VALUE, b"bench/")
            producer.commit_transaction(TIMEOUT_SECS)
        return time.perf_counter() - begun
