"""The proxy that tests put before servers: what it loses, holds back and cuts, on a server that answers each line."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from tests.kits.components import eventually
from tests.services.proxy import Protocol, Proxy

PATIENCE_SECS = 30.0


class Answering:
    """A server that answers each piece by itself in capitals; `heard` is what came, `ended` who has gone."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.ended = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._answer, args=[self._listener.accept()[0]], daemon=True).start()

    def _answer(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            while piece := client.recv(1000):
                self.heard.append(piece)
                client.sendall(piece.upper())
        self.ended += 1

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def server() -> Iterator[Answering]:
    made = Answering()
    yield made
    made.close()


@pytest.fixture
def proxy(server: Answering) -> Iterator[Proxy]:
    made = Proxy(server.port, Protocol(b"commit"))
    yield made
    made.close()


@pytest.fixture
def client(proxy: Proxy) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", proxy.port), PATIENCE_SECS) as made:
        yield made


def said(client: socket.socket, piece: bytes) -> bytes:
    """Send a piece; return the answer, nothing where the connection was cut."""
    try:
        client.sendall(piece)
        return client.recv(1000)
    except ConnectionError:
        return b""


def test_what_is_not_to_be_lost_is_passed_on(server: Answering, proxy: Proxy, client: socket.socket) -> None:
    assert [said(client, piece) for piece in (b"one", b"commit")] == [b"ONE", b"COMMIT"]
    assert (server.heard, proxy.lost) == ([b"one", b"commit"], 0)


def test_a_request_that_is_lost_never_arrives_and_both_sides_are_cut(
    server: Answering, proxy: Proxy, client: socket.socket
) -> None:
    proxy.lose("request")
    assert [said(client, piece) for piece in (b"one", b"commit")] == [b"ONE", b""]
    eventually(lambda: server.ended == 1)
    assert (server.heard, proxy.lost) == ([b"one"], 1)


def test_a_reply_that_is_lost_is_that_to_the_request_and_both_sides_are_cut(
    server: Answering, proxy: Proxy, client: socket.socket
) -> None:
    proxy.lose("reply")
    assert [said(client, piece) for piece in (b"one", b"commit")] == [b"ONE", b""]
    eventually(lambda: server.ended == 1)
    assert (server.heard, proxy.lost) == ([b"one", b"commit"], 1)


def test_what_is_lost_may_be_a_request_of_a_certain_kind(
    server: Answering, proxy: Proxy, client: socket.socket
) -> None:
    proxy.lose("request", b"prepare")
    assert [said(client, piece) for piece in (b"commit", b"prepare it")] == [b"COMMIT", b""]
    eventually(lambda: server.ended == 1)
    assert (server.heard, proxy.lost) == ([b"commit"], 1)


@pytest.mark.parametrize(("lost", "heard"), [("silent request", [b"one"]), ("silent reply", [b"one", b"commit"])])
def test_a_connection_that_falls_silent_stays_open_and_neither_side_hears_of_the_others_end(
    server: Answering, proxy: Proxy, client: socket.socket, lost: str, heard: list[bytes]
) -> None:
    proxy.lose(lost)
    assert said(client, b"one") == b"ONE"
    client.sendall(b"commit")
    eventually(lambda: proxy.lost == 1)
    client.sendall(b"still there?")
    client.setblocking(False)
    with pytest.raises(BlockingIOError):
        client.recv(1000)
    client.close()
    with socket.create_connection(("127.0.0.1", proxy.port), PATIENCE_SECS) as other:
        assert said(other, b"commit") == b"COMMIT"  # one fault is one connection's
    eventually(lambda: server.ended == 1)  # the other one's
    assert server.heard == [*heard, b"commit"]
    proxy.cut()
    eventually(lambda: server.ended == 2)


def test_nothing_gets_through_while_it_is_half_open(server: Answering, proxy: Proxy, client: socket.socket) -> None:
    assert said(client, b"one") == b"ONE"
    proxy.half_open = True
    client.sendall(b"two")
    client.setblocking(False)
    with pytest.raises(BlockingIOError):
        client.recv(1000)
    assert server.heard == [b"one"]
    proxy.half_open = False
    client.settimeout(PATIENCE_SECS)
    assert client.recv(1000) == b"TWO"


def test_what_is_cut_is_closed_on_both_sides(server: Answering, proxy: Proxy, client: socket.socket) -> None:
    assert said(client, b"one") == b"ONE"
    proxy.cut()
    assert said(client, b"two") == b""
    eventually(lambda: server.ended == 1)
