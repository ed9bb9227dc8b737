"""Kafka's protocol, as a proxy has to know it: which request ends a transaction, and which reply answers it."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable

from tests.services.proxy import Protocol, ZooKeeperProtocol

END_TXN = 26


class KafkaProtocol(Protocol):
    """Frames of a length each. `on_lost` is called where a request, or the reply to it, is about to be lost."""

    def __init__(self) -> None:
        self.on_lost: Callable[[], None] = lambda: None
        self._frames = ZooKeeperProtocol()
        self._loses_request = False

    def pieces(self, sock: socket.socket) -> bytes:
        return self._frames.pieces(sock)

    def lose_request(self, loses: bool) -> None:
        """Say whether it is the request that is lost."""
        self._loses_request = loses

    def wanted(self, request: bytes) -> int | None:
        if len(request) < 12:
            return None
        kind, _, number = struct.unpack_from(">hhi", request, 4)
        if kind != END_TXN:
            return None
        if self._loses_request:
            self.on_lost()
        return int(number)

    def answers(self, reply: bytes, wanted: int) -> bool:
        found = len(reply) >= 8 and struct.unpack_from(">i", reply, 4)[0] == wanted
        if found:
            self.on_lost()
        return found
