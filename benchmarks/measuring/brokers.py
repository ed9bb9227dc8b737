"""Brokers: a Kafka broker for the rows that need one, started when it is first asked for."""

from __future__ import annotations

import itertools
import shutil
import threading
from typing import TYPE_CHECKING, Any

from benchmarks.measuring.recorder import NotAvailable
from benchmarks.topologies.kafka_records import PARTITIONS, ROUND_RECORDS, Records, records

if TYPE_CHECKING:
    from examples.kafka_broker import KafkaBroker

TIMEOUT_SECS = 60.0
STARTS_MAX = 3


class Brokers:
    """One broker, which is its own controller; each topic is new."""

    def __init__(self) -> None:
        self._broker: KafkaBroker | None = None
        self._numbers = itertools.count(1)

    @property
    def servers(self) -> str:
        """Where it is.

        Raises:
            NotAvailable: confluent-kafka, or Kafka's jars, are not there.
        """
        if self._broker is None:
            self._broker = started()
        return self._broker.servers

    def topic(self, partitions: int) -> str:
        """Make a topic; return its name."""
        from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

        name = f"bench-{next(self._numbers)}"
        admin = AdminClient({"bootstrap.servers": self.servers})
        for made in admin.create_topics([NewTopic(name, partitions, 1)]).values():
            made.result(TIMEOUT_SECS)
        return name

    def fill(self, topic: str, number: int) -> None:
        """Write the rows' records, at least so many in all, each partition as many, both side by side."""
        rounds = -(-number // (PARTITIONS * ROUND_RECORDS))
        writers = [
            threading.Thread(target=self._write, args=(topic, partition, records(partition), rounds), daemon=True)
            for partition in range(PARTITIONS)
        ]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()

    def _write(self, topic: str, partition: int, records: Records, rounds: int) -> None:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 20, "batch.size": 1 << 20})
        for _ in range(rounds):
            for key, value in records:
                while True:
                    try:
                        producer.produce(topic, value, key, partition=partition)
                        break
                    except BufferError:
                        producer.poll(0.1)
            producer.poll(0)
        assert producer.flush(TIMEOUT_SECS) == 0

    def close(self) -> None:
        """End the broker; what it has written goes with it."""
        if self._broker is not None:
            self._broker.stop()
            self._broker = None

    def remove_files(self) -> None:
        """Remove what a broker has written that was ended by others."""
        if self._broker is not None:
            shutil.rmtree(self._broker.folder, ignore_errors=True)


def started() -> KafkaBroker:
    """Start a broker on free ports, as the tests' own, which ends with this process whatever becomes of it."""
    try:
        import confluent_kafka  # noqa: F401
    except ImportError as error:
        raise NotAvailable("confluent-kafka is not installed: pip install 'stormline[kafka]'") from error
    from examples.kafka_broker import KafkaBroker, jars
    from tests.chaos.processes import die_with_parent
    from tests.services.free_port import free_port

    if jars() is None:
        raise NotAvailable("the jars of Kafka are not there: make kafka")
    failed: Any = None
    for _ in range(STARTS_MAX):
        broker = KafkaBroker(free_port(), free_port())
        broker.process_options["preexec_fn"] = die_with_parent
        try:
            broker.start()
        except RuntimeError as error:  # another process may have taken a port meanwhile
            broker.stop()
            failed = error
        else:
            return broker
    raise failed
