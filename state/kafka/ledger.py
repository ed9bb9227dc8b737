"""The ledger: a compacted topic which says, in each transaction of Kafka's, which transaction of the topology it is.

It is read once by each producer, after its init: then nothing is open of those before it, and nobody else can commit
under its transactional.id without fencing it. So what was read, and what it has committed since, stays right.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from stormline.spouts.kafka.client import STALE
from stormline.spouts.kafka.client_log import Heard
from stormline.state.errors import StoreUnavailable
from stormline.state.fence import Fence
from stormline.state.kafka.errors import LedgerUnusable
from stormline.state.kafka.ledger_record import from_value
from stormline.state.kafka.meanings import MISSING, meaning_of
from stormline.state.kafka.producer import client_settings
from stormline.state.kafka.sink import KafkaSink

log = logging.getLogger("stormline")
T = TypeVar("T")

PARTITION = 0
WAIT_SECS = 0.02
OF_CONNECTIONS = (
    "bootstrap.", "security.", "sasl.", "ssl.", "enable.ssl.", "socket.", "broker.", "reconnect.", "client.", "logger",
)  # fmt: skip
"""Beginnings of the settings that all clients know."""

TOPIC = {
    "cleanup.policy": "compact",
    # What is read at a start is what compaction has not come to yet: more than this only right after a burst.
    "segment.bytes": str(1 << 20),
    "min.cleanable.dirty.ratio": "0.1",
}


class Ledger:
    """One topic, as a sink of one topology uses it."""

    def __init__(self, sink: KafkaSink, topic: str, transactional_id: str) -> None:
        self.topic = topic
        self._where = f"{sink}, ledger {topic!r}"
        self._id = transactional_id
        self._timeout = sink.timeout_secs
        self._heard = Heard()
        settings = client_settings(sink)
        common = {name: value for name, value in settings.items() if name.startswith(OF_CONNECTIONS)}
        self._settings = {**common, "error_cb": self._heard}

    def make_sure(self) -> None:
        """Make the topic where there is none, and check that it is compacted.

        Raises:
            LedgerUnusable: it is not.
        """
        with self._told("looking at it"):
            admin = AdminClient(self._settings)
            policy = self._policy(admin)
            if policy is None:
                self._make(admin)
                policy = self._until_there(admin)
        if policy not in ("compact", "?"):
            raise LedgerUnusable(
                f"{self._where} has cleanup.policy={policy}: what it says would be deleted, and its transactions be "
                "written twice; set cleanup.policy=compact, or give the sink another ledger: KafkaSink(…, ledger='…')"
            )

    def _policy(self, admin: AdminClient) -> str | None:
        """Return the topic's cleanup.policy; None where there is no topic, "?" where this user may not know it."""
        resource = ConfigResource(ResourceType.TOPIC, self.topic)
        try:
            asked = admin.describe_configs([resource], request_timeout=self._timeout)
            return str(_only(asked).result()["cleanup.policy"].value)
        except KafkaException as error:
            if error.args[0].code() in MISSING:
                return None
            if error.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                found = admin.list_topics(self.topic, timeout=self._timeout).topics[self.topic]
                if found.error is not None:
                    raise KafkaException(found.error) from error
                log.warning("%s: whether it is compacted is not known: this user may not DescribeConfigs", self._where)
                return "?"
            raise

    def _make(self, admin: AdminClient) -> None:
        try:
            made = admin.create_topics([NewTopic(self.topic, 1, -1, config=TOPIC)], request_timeout=self._timeout)
            _only(made).result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:  # another task's, or driver's, a moment ago
                raise
        log.info("%s was made", self._where)

    def _until_there(self, admin: AdminClient) -> str | None:
        deadline = time.monotonic() + self._timeout
        while (policy := self._policy(admin)) is None and time.monotonic() < deadline:
            time.sleep(WAIT_SECS)
        return policy

    def read(self) -> dict[bytes, Fence]:
        """Return by key the last committed record, of all that was there when this call began.

        Raises:
            StoreUnavailable: somebody's open transaction holds back what comes after it; in this topic that is another
                topology's, or another task's, which share it.
            LedgerUnusable: it holds what no sink wrote.
        """
        with self._told("reading it"):
            admin = AdminClient(self._settings)
            deadline = time.monotonic() + self._timeout
            end = self._offset(admin, IsolationLevel.READ_UNCOMMITTED, deadline)
            while (stable := self._offset(admin, IsolationLevel.READ_COMMITTED, deadline)) < end:
                if time.monotonic() > deadline:
                    raise StoreUnavailable(
                        f"{self._where}: a transaction that is open since offset {stable} holds back what comes after "
                        "it, which is needed; it ends by its transaction.timeout.ms, unless a crash left it "
                        "hanging (kafka-transactions find-hanging tells); the batch is replayed"
                    )
                time.sleep(WAIT_SECS)
            return self._read_to(end, deadline)

    def _offset(self, admin: AdminClient, isolation: IsolationLevel, deadline: float) -> int:
        """Return the offset after the last record; of a new topic, once the brokers know who leads it."""
        spec: Any = OffsetSpec  # has no types
        place = TopicPartition(self.topic, PARTITION)
        while True:
            asked = admin.list_offsets({place: spec.latest()}, isolation_level=isolation, request_timeout=self._timeout)
            try:
                return int(_only(asked).result().offset)
            except KafkaException as error:
                if error.args[0].code() not in STALE or time.monotonic() > deadline:
                    raise
            time.sleep(WAIT_SECS)

    def _read_to(self, end: int, deadline: float) -> dict[bytes, Fence]:
        found: dict[bytes, Fence] = {}
        consumer = Consumer(
            {
                "fetch.wait.max.ms": 50,
                "fetch.queue.backoff.ms": 10,
                **self._settings,
                "group.id": self._id,  # the library wants one; nothing is written to it
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
            }
        )
        try:
            consumer.assign([TopicPartition(self.topic, PARTITION, 0)])
            offset = 0
            while offset < end:
                if time.monotonic() > deadline:
                    raise StoreUnavailable(
                        f"{self._where}: read up to offset {offset} of {end} within {self._timeout} s"
                        f"{''.join(f'; {error.str()}' for error in self._heard.errors)}; the batch is replayed"
                    )
                for message in consumer.consume(1000, WAIT_SECS):
                    error = message.error()
                    if error is not None and error.code() != KafkaError._PARTITION_EOF:
                        raise KafkaException(error)
                    at = message.offset() or 0
                    if error is None:
                        where = f"{self._where}, offset {at},"
                        found[message.key() or b""] = from_value(message.value(), where)
                        at += 1
                    offset = max(offset, at)
        finally:
            consumer.close()
        return found

    @contextmanager
    def _told(self, what: str) -> Iterator[None]:
        try:
            yield
        except KafkaException as error:
            where = f"{self._where}: {what}"
            raise meaning_of(error.args[0], where, self._id, self._heard.errors) from error


def _only(asked: dict[Any, Future[T]]) -> Future[T]:
    """Return the answer to the one thing that was asked for."""
    [future] = asked.values()
    return future
