"""One broker for all tests of Kafka: it takes two seconds to start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stormline.spouts.kafka import KafkaTransactionalSpout, OpaqueKafkaTransactionalSpout
from tests.kafka.by_hand import ByHand
from tests.services.kafka_broker import Kafka, kafka_broker

BOTH = (KafkaTransactionalSpout, OpaqueKafkaTransactionalSpout)


@pytest.fixture(scope="session")
def kafka() -> Iterator[Kafka]:
    with kafka_broker() as made:
        yield made


@pytest.fixture(params=BOTH, ids=["idempotent", "opaque"])
def kind(request: pytest.FixtureRequest) -> Any:
    """Each of the two spouts."""
    return request.param


Open = Callable[..., ByHand]


@pytest.fixture
def open_spout(kafka: Kafka) -> Iterator[Open]:
    """What calls a spout of the broker's topics by hand; all are closed when the test has ended."""
    made: list[ByHand] = []

    def open_one(kind: Any, topics: Any, fields: Any = ("value",), columnar: bool = False, **how: Any) -> ByHand:
        how = {"discover_secs": 0.001, **how}
        made.append(ByHand(kind(how.pop("servers", kafka.servers), topics, fields, **how), columnar))
        return made[-1]

    yield open_one
    for one in made:
        one.close()
