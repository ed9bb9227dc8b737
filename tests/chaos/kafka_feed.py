"""The numbers in Kafka: the rows of the source's file, in transactions, before each third of which one aborts."""

from __future__ import annotations

import threading
from typing import Any

from tests.chaos.design import Design
from tests.chaos.kafka import ChaosKafka
from tests.chaos.kafka_topics import numbers_of
from tests.chaos.source import SourceFile
from tests.kafka.output import messages

FEED_SECS = 0.05
FAILURES_MAX = 10
"""One after another: then it is no fault that passes."""

ROWS_MAX = 5000
"""Of each partition, in one transaction."""

ABORTED_ROWS_MAX = 50


class KafkaFeed:
    """Writes row n of partition p as the number n · partitions + p, as far as the source's file has them."""

    def __init__(self, kafka: ChaosKafka, source: SourceFile, design: Design) -> None:
        self._kafka = kafka
        self._source = source
        self._partitions = design.partitions
        self._stopping = threading.Event()
        self.topic = kafka.client.topic(design.partitions, numbers_of(design.topology))
        self.rows = 0
        self._producer: Any = None
        self._starts = 0
        self._transactions = 0
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._feed, daemon=True, name="kafka-feed")
        self._thread.start()

    def stop(self) -> None:
        """Write no more; raise what has gone wrong."""
        self._stopping.set()
        self._thread.join()
        if self.error is not None:
            raise self.error

    def _feed(self) -> None:
        failed = 0
        while not self._stopping.wait(FEED_SECS):
            end = min(self._source.source.rows, self.rows + ROWS_MAX)
            if end > self.rows:
                try:
                    with self._kafka.quiet:
                        self._write(end)
                    failed = 0
                except Exception as error:  # the broker has just come back, say: nobody knows what became of it
                    self._producer = None
                    failed += 1
                    if failed == FAILURES_MAX:
                        self.error = error
                        return

    def _write(self, end: int) -> None:
        """Write rows up to `end`, all or none; wait until readers see them."""
        if self._producer is None or self._starts != self._kafka.starts:
            starts = self._kafka.starts
            self._producer = self._kafka.client.producer(f"{self.topic}-feed", **{"linger.ms": 5})
            # By then it is known what became of the last transaction, and of each row there is one record, or none.
            self.rows, rest = divmod(len(messages(self._kafka.client, self.topic)), self._partitions)
            assert rest == 0, "a transaction holds a row of each partition"
            self._starts = starts
        producer = self._producer
        if self._transactions % 3 == 2:
            producer.begin_transaction()
            self._produce(producer, min(end, self.rows + ABORTED_ROWS_MAX))
            producer.flush(60)
            producer.abort_transaction(60)
        producer.begin_transaction()
        self._produce(producer, end)
        producer.commit_transaction(60)
        self.rows = end
        self._transactions += 1
        while not self._kafka.is_settled(self.topic) and not self._stopping.wait(0.01):
            pass

    def _produce(self, producer: Any, end: int) -> None:
        for row in range(self.rows, end):
            for partition in range(self._partitions):
                number = row * self._partitions + partition
                while True:
                    try:
                        producer.produce(self.topic, b"%d" % number, partition=partition)
                        break
                    except BufferError:
                        producer.poll(0.1)
