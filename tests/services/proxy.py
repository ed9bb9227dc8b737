"""A TCP proxy that loses replies, delays, cuts, and leaves connections half open."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable

_MULTI = 14
_FRAME_MAX = 64 * 1024 * 1024


class Protocol:
    """Cuts a stream into pieces, and tells which request's reply is worth losing, and which reply that is."""

    def pieces(self, sock: socket.socket) -> bytes:
        """Return the next piece; nothing at the end."""
        return sock.recv(65536)

    def wanted(self, request: bytes) -> int | None:
        """Return what identifies the reply to a request that changes something; None for other requests."""
        return 0 if b"COMMIT" in request else None

    def answers(self, reply: bytes, wanted: int) -> bool:
        """Return whether a reply is the one."""
        return True


class ZooKeeperProtocol(Protocol):
    """Frames of a length each; transactions are multis."""

    def pieces(self, sock: socket.socket) -> bytes:
        head = sock.recv(4, socket.MSG_WAITALL)
        if len(head) < 4:
            return b""
        (length,) = struct.unpack(">i", head)
        if not 0 <= length <= _FRAME_MAX:
            return b""
        body = sock.recv(length, socket.MSG_WAITALL)
        return head + body if len(body) == length else b""

    def wanted(self, request: bytes) -> int | None:
        if len(request) < 12:
            return None
        xid, kind = struct.unpack_from(">ii", request, 4)
        return xid if kind == _MULTI and xid > 0 else None

    def answers(self, reply: bytes, wanted: int) -> bool:
        return len(reply) >= 8 and struct.unpack_from(">i", reply, 4)[0] == wanted


class Proxy:
    """Stands before one server until the harness ends.

    delay_secs: added to every piece, in each direction. half_open: nothing gets through, and nobody is told.
    """

    def __init__(self, server_port: int, protocol: Protocol) -> None:
        self.delay_secs = 0.0
        self.half_open = False
        self.lost = 0
        self._fault = ""
        self._server_port = server_port
        self._protocol = protocol
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._spawn(self._accept)

    def lose(self, what: str) -> None:
        """Cut the connection in place of the next "request" that changes something, or of the "reply" to it."""
        self._fault = what

    def cut(self) -> None:
        """Close all connections."""
        with self._lock:
            sockets = list(self._sockets)
        for sock in sockets:
            self._close(sock)

    def close(self) -> None:
        """Close the proxy for good."""
        self._close(self._listener)
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self._sockets.add(client)
            self._spawn(self._connect, client)

    def _connect(self, client: socket.socket) -> None:
        self._wait()
        try:
            server = socket.create_connection(("127.0.0.1", self._server_port), timeout=5)
            server.settimeout(None)
        except OSError:
            self._close(client)
            return
        with self._lock:
            self._sockets.add(server)
        awaited: list[int] = []
        self._spawn(self._pass, client, server, lambda piece: self._request(piece, awaited))
        self._spawn(self._pass, server, client, lambda piece: self._reply(piece, awaited))

    def _request(self, piece: bytes, awaited: list[int]) -> bool:
        wanted = self._protocol.wanted(piece) if self._fault else None
        if wanted is not None:
            with self._lock:
                fault, self._fault = self._fault, ""
            if fault == "request":
                self.lost += 1
                return False
            if fault == "reply":
                awaited.append(wanted)
        return True

    def _reply(self, piece: bytes, awaited: list[int]) -> bool:
        if awaited and self._protocol.answers(piece, awaited[0]):
            self.lost += 1
            return False
        return True

    def _pass(self, source: socket.socket, target: socket.socket, passes: Callable[[bytes], bool]) -> None:
        with contextlib.suppress(OSError):
            while piece := self._protocol.pieces(source):
                if not passes(piece):
                    break
                self._wait()
                target.sendall(piece)
        self._close(source)
        self._close(target)

    def _wait(self) -> None:
        if self.delay_secs:
            time.sleep(self.delay_secs)
        while self.half_open:
            time.sleep(0.02)

    def _spawn(self, target: Callable[..., None], *args: object) -> None:
        threading.Thread(target=target, args=args, daemon=True).start()

    def _close(self, sock: socket.socket) -> None:
        with self._lock:
            self._sockets.discard(sock)
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
        sock.close()
