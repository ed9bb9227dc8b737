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
    """Cuts a stream into pieces, and tells which request's reply is worth losing, and which reply that is.

    `commits`: what stands in a request that commits.
    """

    def __init__(self, commits: bytes = b"COMMIT") -> None:
        self._commits = commits

    def pieces(self, sock: socket.socket) -> bytes:
        """Return the next piece; nothing at the end."""
        return sock.recv(65536)

    def wanted(self, request: bytes) -> int | None:
        """Return what identifies the reply to a request that changes something; None for other requests."""
        return 0 if self._commits in request else None

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


class Passage:
    """One connection. `silent`: nothing gets through any more, and neither side is told, not of the other's end."""

    def __init__(self) -> None:
        self.awaited: list[int] = []
        self.fault = ""
        self.silent = False


class Proxy:
    """Stands before one server until the harness ends.

    delay_secs: added to every piece, in each direction. half_open: nothing gets through, and nobody is told.
    lost: how many requests and replies were lost.
    """

    def __init__(self, server_port: int, protocol: Protocol) -> None:
        self.delay_secs = 0.0
        self.half_open = False
        self.lost = 0
        self._fault = ""
        self._of = b""
        self._server_port = server_port
        self._protocol = protocol
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._spawn(self._accept)

    def lose(self, what: str, of: bytes = b"") -> None:
        """Cut the connection in place of the next "request" that changes something, or of the "reply" to it.

        "silent request", "silent reply": from there on nothing gets through, and the connection stays open.

        Args:
            of: what stands in the request, where it is to be a certain one.
        """
        self._of = of
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
        passage = Passage()
        self._spawn(self._pass, client, server, passage, lambda piece: self._request(piece, passage))
        self._spawn(self._pass, server, client, passage, lambda piece: self._reply(piece, passage))

    def _request(self, piece: bytes, passage: Passage) -> bool:
        """Return whether a request is passed on."""
        of = self._of
        wanted = None
        if self._fault and (not of or of in piece):
            wanted = 0 if of else self._protocol.wanted(piece)
        if wanted is None:
            return True
        with self._lock:
            fault, self._fault = self._fault, ""
        if fault.endswith("request"):
            self._lose(passage, fault)
            return False
        if fault:
            passage.awaited.append(wanted)
            passage.fault = fault
        return True

    def _reply(self, piece: bytes, passage: Passage) -> bool:
        """Return whether a reply is passed on."""
        if passage.awaited and self._protocol.answers(piece, passage.awaited[0]):
            self._lose(passage, passage.fault)
            return False
        return True

    def _lose(self, passage: Passage, fault: str) -> None:
        passage.silent = fault.startswith("silent")
        self.lost += 1

    def _pass(
        self, source: socket.socket, target: socket.socket, passage: Passage, passes: Callable[[bytes], bool]
    ) -> None:
        with contextlib.suppress(OSError):
            while piece := self._protocol.pieces(source):
                if not passage.silent and not passes(piece) and not passage.silent:
                    break
                if passage.silent:
                    continue
                self._wait()
                target.sendall(piece)
        if passage.silent:
            return  # as where a cable is cut: the other side hears of nothing, until `cut`
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
