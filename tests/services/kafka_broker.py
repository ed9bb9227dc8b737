"""A real Kafka, one a test session: each test has topics of its own."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import trustme
from confluent_kafka import KafkaException, Producer, TopicCollection
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from examples.kafka_broker import KafkaBroker, jars
from tests.chaos.processes import die_with_parent
from tests.kits.components import eventually
from tests.services.free_port import free_port

STARTS_MAX = 3
_numbers = itertools.count(1)


def need_jars() -> None:
    """Skip the test without the jars of Kafka, and fail it in CI."""
    if jars() is None:
        why = "the jars of Kafka are not there: make kafka"
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)


@contextmanager
def kafka_broker(settings: Mapping[str, object] | None = None) -> Iterator[Kafka]:
    """A broker that has ended when the block has; the test is skipped without its jars, and fails in CI."""
    need_jars()
    for left in reversed(range(STARTS_MAX)):
        port, controller_port, secured_port = free_port(), free_port(), free_port()
        broker = KafkaBroker(port, controller_port)
        broker.process_options["preexec_fn"] = die_with_parent
        broker.configure({**secured(broker, controller_port, secured_port), **(settings or {})})
        try:
            broker.start()
            break
        except RuntimeError:  # another process may have taken a port meanwhile
            broker.stop()
            if not left:
                raise
    kafka = Kafka(broker, f"127.0.0.1:{secured_port}")
    try:
        yield kafka
    finally:
        kafka.close()
        broker.stop()


def secured(broker: KafkaBroker, controller_port: int, port: int) -> dict[str, object]:
    """Return settings of a second way in: by TLS, for alice with her password."""
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(broker.folder / "ca.pem")
    keys = broker.folder / "keys.pem"
    key = load_pem_private_key(certificate.private_key_pem.bytes(), None)
    pkcs8 = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    keys.write_bytes(pkcs8 + b"".join(part.bytes() for part in certificate.cert_chain_pems))
    plain, sasl = "PLAINTEXT://127.0.0.1", "SASL_SSL://127.0.0.1"
    login = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return {
        "listeners": f"{plain}:{broker.port},{sasl}:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{login} required user_alice="alice-secret";',
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": keys,
    }


class Kafka:
    """A broker, and what tests do with its topics."""

    def __init__(self, broker: KafkaBroker, secured_servers: str, servers: str = "") -> None:
        self.broker = broker
        self.servers = servers or broker.servers
        self.secured_servers = secured_servers
        self.ca_file = broker.folder / "ca.pem"
        self.admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        self._producers: list[Producer] = []

    def topic(self, partitions: int = 1, name: str = "", **config: str) -> str:
        """Make a topic; return its name."""
        name = name or self.free_name()
        settings = {key.replace("_", "."): value for key, value in config.items()}
        for made in self.admin.create_topics([NewTopic(name, partitions, 1, config=settings)]).values():
            made.result()
        eventually(lambda: self.topic_id(name), 60)  # brokers know late of what they have made
        return name

    def free_name(self) -> str:
        """Return a name that nothing has."""
        return f"topic-{next(_numbers)}"

    def topic_id(self, topic: str) -> str:
        """Return the id of a topic; empty where there is none."""
        try:
            return str(self.admin.describe_topics(TopicCollection([topic]))[topic].result().topic_id)
        except KafkaException:
            return ""

    def delete(self, *topics: str) -> None:
        """Delete topics."""
        for deleted in self.admin.delete_topics([*topics]).values():
            deleted.result()

    def producer(self, transactional_id: str = "", **config: Any) -> Producer:
        """Return a producer; one with an id has begun its life, and no transaction."""
        settings: dict[str, Any] = {"bootstrap.servers": self.servers, "linger.ms": 0, "log_level": 0, **config}
        if transactional_id:
            settings["transactional.id"] = transactional_id
        producer = Producer(settings)
        if transactional_id:
            producer.init_transactions(60)
        self._producers.append(producer)
        return producer

    def write(self, topic: str, values: Iterable[Any], partition: int = 0, **more: Any) -> None:
        """Write values, or (key, value)s, outside of transactions, and wait until they are there."""
        producer = self.producer()
        for record in values:
            key, value = record if isinstance(record, tuple) else (None, record)
            producer.produce(topic, value, key, partition=partition, **more)
        assert producer.flush(60) == 0

    def close(self) -> None:
        """End the connections."""
        self._producers.clear()


def in_transaction(
    producer: Producer, topic: str, values: Sequence[Any], partition: int = 0, *, commit: bool = True
) -> None:
    """Write values in one transaction, which is committed or aborted."""
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=partition)
    if commit:
        producer.commit_transaction(60)
    else:
        producer.flush(60)  # or what has not been sent leaves no trace in the log
        producer.abort_transaction(60)
