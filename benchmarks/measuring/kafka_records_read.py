"""What a topic holds, for those who read committed records only."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

TIMEOUT_SECS = 60.0
TAKEN_AT_ONCE = 2_000


def read_to_end(servers: str, topic: str, partition: int = 0) -> Iterator[Any]:
    """Give the committed records of a partition, up to its end."""
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "fetch.queue.backoff.ms": 10,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0)])
    deadline = time.monotonic() + TIMEOUT_SECS
    try:
        while time.monotonic() < deadline:
            for message in consumer.consume(TAKEN_AT_ONCE, 0.2):
                error = message.error()
                if error is None:
                    yield message
                elif error.code() == KafkaError._PARTITION_EOF:
                    return
                else:
                    raise RuntimeError(f"reading {topic!r}: {error}")
        raise TimeoutError(f"{topic!r} was not read to its end within {TIMEOUT_SECS:g} s")
    finally:
        consumer.close()
