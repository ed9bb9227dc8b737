"""A broker of its own for bad days: it lets in by TLS and SASL whom its ACLs allow, and through a proxy anybody."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import trustme
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from examples.kafka_broker import KafkaBroker
from tests.services.free_port import free_port
from tests.services.kafka_broker import Kafka
from tests.services.kafka_proxy import KafkaProtocol
from tests.services.proxy import Proxy

USER, PASSWORD = "writer", "a-secret-of-the-writer"


class GuardedKafka(Kafka):
    """The broker, as who may do all sees it; `guarded` and `proxied` are where others find it."""

    def __init__(self, broker: KafkaBroker, guarded: str, authority: Path, protocol: KafkaProtocol, proxy: Proxy):
        super().__init__(broker)
        self.guarded = guarded
        self.authority = authority
        self.protocol = protocol
        self.proxy = proxy
        self.proxied = f"127.0.0.1:{proxy.port}"

    def allow(self, kind: ResourceType, name: str, *operations: AclOperation) -> None:
        """Let the user do something with what has this name."""
        allowed = [
            AclBinding(kind, name, ResourcePatternType.LITERAL, f"User:{USER}", "*", operation, AclPermissionType.ALLOW)
            for operation in operations
        ]
        for made in self.admin.create_acls(allowed).values():
            made.result()


@contextmanager
def guarded_broker(folder: Path) -> Iterator[GuardedKafka]:
    """A broker that has ended when the block has. `folder`: where its certificates are."""
    plain, controller, behind, guarded = (free_port() for _ in range(4))
    protocol = KafkaProtocol()
    proxy = Proxy(behind, protocol)
    authority, server = folder / "authority.pem", folder / "server.pem"
    ca = trustme.CA()
    ca.cert_pem.write_to_path(str(authority))
    issued = ca.issue_cert("localhost", "127.0.0.1")
    key = load_pem_private_key(issued.private_key_pem.bytes(), None)
    # The one form of a key that Java reads.
    pkcs8 = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    server.write_bytes(pkcs8 + b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    here = {"PLAINTEXT": plain, "PROXIED": proxy.port, "SASL_SSL": guarded}
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    broker = KafkaBroker(
        plain,
        controller,
        {
            "listeners": ",".join(
                f"{name}://127.0.0.1:{port}"
                for name, port in {**here, "PROXIED": behind, "CONTROLLER": controller}.items()
            ),
            "advertised.listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in here.items()),
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,PROXIED:PLAINTEXT,"
            "SASL_SSL:SASL_SSL",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{module} required user_{USER}="{PASSWORD}";',
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": server,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        },
    )
    try:
        broker.start()
        kafka = GuardedKafka(broker, f"127.0.0.1:{guarded}", authority, protocol, proxy)
        yield kafka
        kafka.close()
    finally:
        broker.stop()
        proxy.close()
