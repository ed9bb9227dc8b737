"""A broker of its own for bad days: it lets in by TLS and SASL whom its ACLs allow, and through a proxy anybody."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from examples.kafka_broker import KafkaBroker
from tests.services.free_port import free_port
from tests.services.kafka_broker import Kafka, secured
from tests.services.kafka_proxy import KafkaProtocol
from tests.services.proxy import Proxy


class GuardedKafka(Kafka):
    """The broker, as who may do all sees it; `secured_servers` and `proxied` are where others find it."""

    def __init__(self, broker: KafkaBroker, secured_servers: str, protocol: KafkaProtocol, proxy: Proxy) -> None:
        super().__init__(broker, secured_servers)
        self.protocol = protocol
        self.proxy = proxy
        self.proxied = f"127.0.0.1:{proxy.port}"

    def allow(self, kind: ResourceType, name: str, *operations: AclOperation) -> None:
        """Let alice do something with what has this name."""
        allowed = [
            AclBinding(kind, name, ResourcePatternType.LITERAL, "User:alice", "*", one, AclPermissionType.ALLOW)
            for one in operations
        ]
        for made in self.admin.create_acls(allowed).values():
            made.result()


@contextmanager
def guarded_broker() -> Iterator[GuardedKafka]:
    """A broker that has ended when the block has."""
    port, controller_port, secured_port, behind = (free_port() for _ in range(4))
    broker = KafkaBroker(port, controller_port)
    protocol = KafkaProtocol()
    proxy = Proxy(behind, protocol)
    settings = secured(broker, controller_port, secured_port)
    here = "PLAINTEXT://127.0.0.1:{},SASL_SSL://127.0.0.1:{},PROXIED://127.0.0.1:{}"
    broker.configure(
        {
            **settings,
            "listeners": f"{settings['listeners']},PROXIED://127.0.0.1:{behind}",
            "advertised.listeners": here.format(port, secured_port, proxy.port),
            "listener.security.protocol.map": f"{settings['listener.security.protocol.map']},PROXIED:PLAINTEXT",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }
    )
    try:
        broker.start()
        kafka = GuardedKafka(broker, f"127.0.0.1:{secured_port}", protocol, proxy)
        yield kafka
        kafka.close()
    finally:
        broker.stop()
        proxy.close()
