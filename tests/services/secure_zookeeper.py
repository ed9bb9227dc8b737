"""A real ZooKeeper with everything switched on: TLS, with or without certificates of clients, SASL and digest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import trustme
from cryptography.hazmat.primitives import serialization

from tests.services.zookeeper_server import ZooKeeperServer

USERS = {"storm": "storms-password", "other": "others-password"}


class SecureZooKeeper:
    """`server.hosts` speaks plainly; `tls_hosts` speaks TLS, and asks for a client's certificate where it needs one."""

    def __init__(self, directory: Path, *, client_auth: str) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        authority = trustme.CA()
        self.ca = directory / "ca.pem"
        authority.cert_pem.write_to_path(self.ca)
        self.server_pem = directory / "server.pem"
        server = authority.issue_cert("127.0.0.1")
        self.server_pem.write_bytes(_pkcs8(server.private_key_pem.bytes()) + server.cert_chain_pems[0].bytes())
        client = authority.issue_cert("driver.example")
        self.certificate, self.key = directory / "client.pem", directory / "client.key"
        client.cert_chain_pems[0].write_to_path(self.certificate)
        client.private_key_pem.write_to_path(self.key)
        self.foreign_ca = directory / "foreign.pem"
        trustme.CA().cert_pem.write_to_path(self.foreign_ca)
        self.server = ZooKeeperServer(
            directory / "data", self._settings(client_auth), self._jvm_options(), ports=["secureClientPort"]
        )

    @property
    def tls_hosts(self) -> str:
        """Where clients that speak TLS find the server."""
        return f"127.0.0.1:{self.server.ports['secureClientPort']}"

    def _settings(self, client_auth: str) -> list[str]:
        return [
            "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
            f"ssl.keyStore.location={self.server_pem}",
            "ssl.keyStore.type=PEM",
            f"ssl.trustStore.location={self.ca}",
            "ssl.trustStore.type=PEM",
            f"ssl.clientAuth={client_auth}",
            "authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
        ]

    def _jvm_options(self) -> list[str]:
        users = "".join(f' user_{name}="{password}"' for name, password in USERS.items())
        jaas = self.directory / "jaas.conf"
        jaas.write_text(f"Server {{ org.apache.zookeeper.server.auth.DigestLoginModule required{users}; }};\n")
        return [f"-Djava.security.auth.login.config={jaas}"]

    def __enter__(self) -> SecureZooKeeper:
        self.server.__enter__()
        return self

    def __exit__(self, *args: Any) -> None:
        self.server.kill()


def _pkcs8(pem: bytes) -> bytes:
    """Return a private key in the only form that ZooKeeper reads."""
    key = serialization.load_pem_private_key(pem, None)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
