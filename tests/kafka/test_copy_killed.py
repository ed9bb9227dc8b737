"""Kafka to Kafka on Spark, whose driver is killed at each point of a commit, while a reader watches."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.cluster.driver_process import DriverProcess
from tests.kafka.output import messages
from tests.services.kafka_broker import Kafka
from tests.topologies.kafka_copied import PARTITIONS, POINTS, RECORDS, TRANSACTIONS

LIFE_SECS = 180.0
TARGET = "tests.topologies.kafka_copied"


@contextmanager
def watched(kafka: Kafka, topic: str) -> Iterator[list[tuple[int, bytes]]]:
    """What a reader of committed records has seen of a topic, partition and value, from the start on."""
    seen: list[tuple[int, bytes]] = []
    over = threading.Event()
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.servers,
            "group.id": "watch",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])

    def watch() -> None:
        while not over.is_set() or len(seen) < PARTITIONS * RECORDS:
            found = consumer.consume(100, 0.1)
            seen.extend((one.partition() or 0, one.value() or b"") for one in found if one.error() is None)
            if over.wait(0) and not found:
                return

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        over.set()
        watcher.join()
        consumer.close()


@pytest.mark.proof
def test_a_driver_that_is_killed_at_each_point_of_a_commit_copies_each_record_once(
    kafka: Kafka, tmp_path: Path
) -> None:
    source, target = kafka.topic(PARTITIONS), kafka.topic(PARTITIONS)
    written = {partition: [b"%d-%d" % (partition, i) for i in range(RECORDS)] for partition in range(PARTITIONS)}
    for partition, values in written.items():
        kafka.write(source, values, partition)
    output = tmp_path / "output.txt"
    env = {"KAFKA_SERVERS": kafka.servers, "COPY_FROM": source, "COPY_TO": target}
    drivers: list[DriverProcess] = []

    def life(**more: str) -> int:
        drivers.append(DriverProcess(TARGET, tmp_path / "state", output, {**env, **more}))
        return drivers[-1].end(LIFE_SECS)

    try:
        with watched(kafka, target) as seen:
            for i, point in enumerate(POINTS):
                assert life(COPY_KILL=f"{point}:{3 * i + 2}") == -9, (point, output.read_text())
            assert life() == 0, output.read_text()
            assert [(one.partition(), one.value()) for one in messages(kafka, target)] == [
                (partition, value) for partition, values in written.items() for value in values
            ]
    finally:
        for driver in drivers:
            driver.close()
    for partition, values in written.items():
        assert [value for one, value in seen if one == partition] == values
    assert 3 * len(POINTS) < TRANSACTIONS
