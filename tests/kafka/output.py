"""What a reader of committed records sees of topics that a sink writes to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import ConfigResource, OffsetSpec, ResourceType  # type: ignore[attr-defined]

from stormline import TransactionAttempt
from stormline.state.kafka import KafkaSink
from tests.kits.components import eventually
from tests.services.kafka_broker import Kafka

Work = Callable[[Any, TransactionAttempt], Any]


def offsets(kafka: Kafka, topic: str, isolation: IsolationLevel = IsolationLevel.READ_COMMITTED) -> dict[int, int]:
    """Return where each partition ends: with READ_COMMITTED before the first open transaction."""
    count = len(kafka.admin.list_topics(topic, timeout=30).topics[topic].partitions)
    places = {TopicPartition(topic, partition): OffsetSpec.latest() for partition in range(count)}
    asked = kafka.admin.list_offsets(places, isolation_level=isolation)
    return {place.partition: future.result().offset for place, future in asked.items()}


def is_settled(kafka: Kafka, topic: str) -> bool:
    """Return whether no transaction is open there; not while a broker, which has just come back, cannot say."""
    try:
        stable = offsets(kafka, topic, IsolationLevel.READ_COMMITTED)
        return stable == offsets(kafka, topic, IsolationLevel.READ_UNCOMMITTED)
    except KafkaException:
        return False


def messages(kafka: Kafka, topic: str) -> list[Any]:
    """Return all committed records of a topic, partition by partition, once no transaction is open there."""
    eventually(lambda: is_settled(kafka, topic), 60)
    left = {partition: end for partition, end in offsets(kafka, topic, IsolationLevel.READ_COMMITTED).items() if end}
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.servers,
            "group.id": "tests",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.queue.backoff.ms": 10,
            "fetch.wait.max.ms": 20,
            "log_level": 0,
        }
    )
    found: list[Any] = []
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in left])
        while left:
            for message in consumer.consume(1000, 0.02):
                error = message.error()
                if error is None:
                    found.append(message)
                assert error is None or error.code() == KafkaError._PARTITION_EOF, error
                partition = message.partition() or 0
                at = (message.offset() or 0) + (error is None)
                if at >= left.get(partition, at + 1):
                    del left[partition]
    finally:
        consumer.close()
    return sorted(found, key=lambda message: (message.partition(), message.offset()))


def values(kafka: Kafka, topic: str) -> list[bytes]:
    """Return the values of all committed records of a topic."""
    return [message.value() for message in messages(kafka, topic)]


def settings_of(kafka: Kafka, topic: str) -> dict[str, str]:
    """Return the settings of a topic."""
    [asked] = kafka.admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
    return {name: entry.value for name, entry in asked.result().items()}


def sends(sink: KafkaSink, topic: str, *records: bytes | None, **more: Any) -> Work:
    """Return what a bolt does that writes some values."""

    def work(context: Any, attempt: TransactionAttempt) -> None:
        transaction = sink.in_commit(context, attempt)
        for record in records:
            transaction.send(topic, record, **more)

    return work
