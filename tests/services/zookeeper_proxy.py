"""A proxy before ZooKeeper, for tests that lose one transaction, or its answer, and look at what follows."""

from __future__ import annotations

import socket
from types import TracebackType

from tests.services.proxy import Passage, Proxy, ZooKeeperProtocol


class ZooKeeperProxy(Proxy):
    """Passes everything on, until told otherwise.

    `multis` counts the transactions that reached the server. `refuse` closes new connections; `swallow` is how many
    new ones are left open and never answered, as a server does with those that come while it starts.
    """

    def __init__(self, server_port: int) -> None:
        self.multis = 0
        self.refuse = False
        self.swallow = 0
        super().__init__(server_port, ZooKeeperProtocol())

    @property
    def hosts(self) -> str:
        """Where clients find the proxy."""
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> ZooKeeperProxy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _connect(self, client: socket.socket) -> None:
        if self.refuse:
            self._close(client)
        elif self.swallow:
            self.swallow -= 1
        else:
            super()._connect(client)

    def _request(self, piece: bytes, passage: Passage) -> bool:
        passes = super()._request(piece, passage)
        self.multis += passes and self._protocol.wanted(piece) is not None
        return passes
