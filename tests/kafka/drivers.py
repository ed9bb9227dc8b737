"""Drivers of a topology of its own for each test, which write into Kafka without a topology around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from stormline.state.kafka import KafkaSink
from tests.kits.stores import Process
from tests.services.kafka_broker import Kafka

Drivers = Callable[..., Process]


@pytest.fixture
def topic(kafka: Kafka) -> str:
    """A topic, whose name is the topology's, too."""
    return kafka.topic()


@pytest.fixture
def sink(kafka: Kafka) -> KafkaSink:
    return KafkaSink(kafka.servers, timeout_secs=60, client={"linger.ms": 0})


@pytest.fixture
def driver(topic: str) -> Iterator[Drivers]:
    """What makes drivers of one topology, of epoch 1 unless told; all are ended."""
    made: list[Process] = []

    def of(epoch: int = 1) -> Process:
        made.append(Process(epoch, topic))
        return made[-1]

    yield of
    for one in made:
        one.end()
