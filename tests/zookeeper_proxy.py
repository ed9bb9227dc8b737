"""A TCP proxy before ZooKeeper that knows its transactions, and can lose them or their answers."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from types import TracebackType

_MULTI = 14


class ZooKeeperProxy:
    """Passes everything on, until told otherwise.

    `multis` counts the transactions that reached the server. `refuse` closes new connections; `swallow` is how many
    new ones are left open and never answered, as a server does with those that come while it starts.
    """

    def __init__(self, server_port: int) -> None:
        self.multis = 0
        self.refuse = False
        self.swallow = 0
        self._fault = ""
        self._server_port = server_port
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]

    @property
    def hosts(self) -> str:
        """Where clients find the proxy."""
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> ZooKeeperProxy:
        self._spawn(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close(self._listener)
        self.drop()
        for thread in self._threads:
            thread.join()

    def lose_reply(self) -> None:
        """Let the next transaction reach the server, and close the connection in place of the answer."""
        self._fault = "reply"

    def lose_request(self) -> None:
        """Close the connection in place of passing the next transaction on."""
        self._fault = "request"

    def drop(self) -> None:
        """Close all connections."""
        with self._lock:
            sockets = list(self._sockets)
        for sock in sockets:
            self._close(sock)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.refuse:
                client.close()
                continue
            if self.swallow:
                self.swallow -= 1
                with self._lock:
                    self._sockets.add(client)
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self._server_port))
            except OSError:
                client.close()
                continue
            with self._lock:
                self._sockets |= {client, server}
            lost: set[int] = set()
            self._spawn(self._requests, client, server, lost)
            self._spawn(self._replies, server, client, lost)

    def _requests(self, client: socket.socket, server: socket.socket, lost: set[int]) -> None:
        connected = False
        while frame := self._frame(client):
            if connected:
                xid, kind = struct.unpack_from(">ii", frame, 4)
                if kind == _MULTI:
                    fault, self._fault = self._fault, ""
                    if fault == "request":
                        break
                    if fault == "reply":
                        lost.add(xid)
                    self.multis += 1
            connected = True
            if not self._send(server, frame):
                break
        self._close(client)
        self._close(server)

    def _replies(self, server: socket.socket, client: socket.socket, lost: set[int]) -> None:
        connected = False
        while frame := self._frame(server):
            if connected and struct.unpack_from(">i", frame, 4)[0] in lost:
                break
            connected = True
            if not self._send(client, frame):
                break
        self._close(client)
        self._close(server)

    def _frame(self, sock: socket.socket) -> bytes:
        with contextlib.suppress(OSError):
            head = sock.recv(4, socket.MSG_WAITALL)
            if len(head) == 4:
                length: int = struct.unpack(">i", head)[0]
                body = sock.recv(length, socket.MSG_WAITALL)
                return head + body if len(body) == length else b""
        return b""

    def _send(self, sock: socket.socket, frame: bytes) -> bool:
        try:
            sock.sendall(frame)
        except OSError:
            return False
        return True

    def _spawn(self, target: object, *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _close(self, sock: socket.socket) -> None:
        with self._lock:
            self._sockets.discard(sock)
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
        sock.close()
