"""A stand-in for Kafka: brokers of this process, and consumers that read from an offset."""

from __future__ import annotations

import random
import threading
from typing import Any


class FailedFetch(Exception):
    """The broker did not answer."""


class Broker:
    """The partitions of one topic that one host keeps; it answers `refusing` out of 1 requests with an error."""

    def __init__(self, partitions: list[list[Any]], refusing: float = 0.0, seed: int = 0) -> None:
        self.partitions = partitions
        self.refusing = refusing
        self.random = random.Random(seed)
        self.connections = 0


_BROKERS: dict[str, Broker] = {}


def start(hosts: dict[str, Broker]) -> None:
    """Let these be all brokers there are."""
    _BROKERS.clear()
    _BROKERS.update(hosts)


class SimpleConsumer:
    """One connection to one host, for one partition."""

    def __init__(self, host: str, partition: int) -> None:
        self._broker = _BROKERS[host]
        self._broker.connections += 1
        self._partition = partition
        self._socket = threading.Lock()

    def fetch(self, offset: int, messages_max: int) -> list[tuple[int, Any]]:
        """Return up to so many messages from `offset` on, each with its offset."""
        if self._broker.random.random() < self._broker.refusing:
            raise FailedFetch
        rows = self._broker.partitions[self._partition][offset : offset + messages_max]
        return list(enumerate(rows, offset))

    def latest_offset(self) -> int:
        return len(self._broker.partitions[self._partition])

    def close(self) -> None: ...
