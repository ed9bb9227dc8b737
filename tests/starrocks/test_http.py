"""How a request travels: from the front end to a back end, with the password to both, and the body only to one."""

from __future__ import annotations

import base64
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from stormline.state.errors import StoreUnavailable
from stormline.state.starrocks import StarRocks
from stormline.state.starrocks.errors import StarRocksRefused
from stormline.state.starrocks.exchange import REDIRECTS_MAX
from tests.kits.components import eventually
from tests.starrocks.conftest import Emulated
from tests.starrocks.faults import Fault
from tests.starrocks.raw import Raw

ORDERS = "stormline_orders"
LOAD = {"db": "shop", "table": ORDERS, "label": "one"}


def test_the_front_end_gets_no_body_and_the_back_end_all_of_it(emulated: Emulated) -> None:
    """requests, httpx and urllib3 send it there in spite of `Expect`."""
    database = emulated.database()
    rows = database.csv(*((number, "x" * 50, number) for number in range(20_000)))
    database.client.begin("one", ORDERS)
    database.client.load("one", ORDERS, rows, {})
    assert database.client.prepare("one").loaded == 20_000
    database.client.commit("one")
    assert len(database.rows()) == 20_000
    assert emulated.cluster.body_bytes_at_front_end == 0


def test_a_body_that_is_sent_to_the_front_end_all_the_same_is_noticed(emulated: Emulated) -> None:
    """So that the test above can fail."""
    answer = Raw.ask(emulated.servers.front_address, "PUT /api/transaction/load", {**LOAD, "label": "none"}, b"x" * 999)
    assert answer.answer()["Status"] == "FAILED"
    Raw.ask(emulated.servers.front_address, "POST /api/transaction/begin", LOAD, b"x" * 999).answer()
    eventually(lambda: emulated.cluster.body_bytes_at_front_end == 999)


def test_a_back_end_wants_the_password_as_well(emulated: Emulated) -> None:
    """Python's HTTP libraries drop it at the redirect to another port."""
    for address, code in ((emulated.servers.front_address, 401), (emulated.servers.back_addresses[0], 200)):
        for user in ("", "root:wrong", "nobody:"):
            answer = Raw.ask(address, "POST /api/transaction/begin", LOAD, user=user).answer()
            assert (answer["code"], answer.get("Status")) in ((code, None), (200, "INTERNAL_ERROR"))


def test_a_load_keeps_its_label_while_its_body_is_under_way(emulated: Emulated) -> None:
    """TXN_IN_PROCESSING for the others, which is no error of theirs; when it breaks off, all of it is aborted."""
    client = emulated.database().client
    client.begin("one", ORDERS)
    back_end = emulated.servers.back_addresses[0]
    slow = Raw.ask(back_end, "PUT /api/transaction/load", LOAD, b"r\t1\tpen\t3\n", send=False)
    slow.until(b"100 Continue")
    for attempt in (lambda: client.load("one", ORDERS, b"r\t2\tink\t4\n", {}), lambda: client.prepare("one")):
        with pytest.raises(StoreUnavailable, match=r"TXN_IN_PROCESSING: .*; the batch is replayed"):
            attempt()
    assert emulated.cluster.states("shop") == {"one": "PREPARE"}
    slow.connection.close()
    eventually(lambda: emulated.cluster.states("shop") == {"one": "ABORTED"})


def test_labels_go_to_the_back_ends_in_turn_and_stay_there(emulated: Emulated) -> None:
    """The front end knows where, by the label."""
    wheres = []
    for operation, label in (("begin", "a"), ("begin", "b"), ("begin", "a"), ("load", "b")):
        method = "PUT" if operation == "load" else "POST"
        headers = {**LOAD, "label": label}
        answer = Raw.ask(emulated.servers.front_address, f"{method} /api/transaction/{operation}", headers).answer()
        assert answer["code"] == 307
        wheres.append(answer["Location"].split("/")[2])
    first, second = emulated.servers.back_addresses
    assert wheres == [first, second, first, second]


def test_the_next_front_end_is_asked_where_one_is_away(emulated: Emulated) -> None:
    """As long as the request cannot have been done."""
    with socket.socket() as taken:  # nobody listens there
        taken.bind(("127.0.0.1", 0))
        nobody = taken.getsockname()[1]
        both = StarRocks(f"starrocks://root@127.0.0.1:{nobody},{emulated.servers.front_address}/shop")
        client = both.open_client()
        client.begin("one", ORDERS)
        assert client.state("one")[0] == "PREPARE"
        emulated.servers.stop("front")
        with pytest.raises(StoreUnavailable, match=r"no answer: 127\.0\.0\.1:\d+: .*; 127\.0\.0\.1:\d+: .*tried again"):
            client.state("one")


def test_an_answer_that_got_lost_is_not_asked_of_another_front_end(emulated: Emulated) -> None:
    """It may have been done."""
    twice = StarRocks(f"starrocks://root@{emulated.servers.front_address},{emulated.servers.front_address}/shop")
    emulated.cluster.faults.add(Fault("begin", "after"))
    with pytest.raises(StoreUnavailable, match="no answer: "):
        twice.open_client().begin("one", ORDERS)
    assert emulated.cluster.states("shop") == {"one": "PREPARE"}


# ---------------------------------------------------------------------------------------- others than StarRocks


@contextmanager
def _answering(answer: Callable[[int], bytes]) -> Iterator[tuple[StarRocks, list[bytes]]]:
    """A server that answers so to whatever is asked, and what it was asked."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def serve() -> None:
            while True:
                connection, _ = server.accept()
                with connection:
                    head = b""
                    while b"\r\n\r\n" not in head and (data := connection.recv(1 << 16)):
                        head += data
                    if not head:
                        return
                    asked.append(head)
                    connection.sendall(answer(port))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield StarRocks(f"starrocks://root@127.0.0.1:{port}/shop", timeout_secs=30), asked
        finally:
            socket.create_connection(("127.0.0.1", port)).close()
            thread.join()


def _http(line: str, body: str = "", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {line}", *(f"{name}: {value}" for name, value in headers.items()), "Connection: close"]
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", body]).encode()


def test_redirects_in_a_circle_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the leading front end and a back end, there is nothing to be sent on to; each got the password."""
    monkeypatch.setenv("SHOP_PASSWORD", "s3cret-of-shop")
    with _answering(lambda port: _http("307 T", Location=f"http://u:p@127.0.0.1:{port}/on?x=1")) as (server, asked):
        client = StarRocks(server.url, "env:SHOP_PASSWORD").open_client()
        with pytest.raises(StoreUnavailable, match=r"redirects to .*, after 3 other redirects"):
            client.begin("one", ORDERS)
        assert len(asked) == REDIRECTS_MAX + 1
        given = base64.b64encode(b"root:s3cret-of-shop")
        assert all(b"Authorization: Basic " + given in head for head in asked)
        assert asked[1].startswith(b"POST /on?x=1 HTTP/1.1")


@pytest.mark.parametrize("location", ["", "https://elsewhere/", "file:/etc", "http://[", "http://h:99999/"])
def test_a_redirect_to_nowhere_is_told_of(location: str) -> None:
    """The front end of what is no StarRocks, or one behind TLS."""
    with (
        _answering(lambda _: _http("307 T", Location=location)) as (server, _),
        pytest.raises(StoreUnavailable, match=r"redirects to '.*', expected http://host:port/…"),
    ):
        server.open_client().begin("one", ORDERS)


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (_http("200 OK", "<html>hello"), StoreUnavailable, r"HTTP 200: '<html>hello', expected JSON"),
        (_http("200 OK", "[1]"), StoreUnavailable, r"'\[1\]', expected a JSON object"),
        (_http("502 Bad Gateway", "{}"), StoreUnavailable, r"HTTP 502: '\{\}', expected JSON; the batch is replayed"),
        (_http("404 Not Found", "no"), StarRocksRefused, r"is this the HTTP port \(8030\) of a StarRocks front end"),
        (_http("403 Forbidden", "no"), StarRocksRefused, r"refused, HTTP 403: 'no'; check user and password"),
        (b"SSH-2.0-OpenSSH\r\n", StoreUnavailable, r"BadStatusLine"),
    ],
)
def test_an_answer_that_is_none_of_starrocks_is_told_of(answer: bytes, error: type[Exception], message: str) -> None:
    """Something between, or another server: stop where it would stay so, replay where it may not."""
    with _answering(lambda _: answer) as (server, _), pytest.raises(error, match=message):
        server.open_client().begin("one", ORDERS)


def test_numbers_of_rows_that_are_missing_are_not_guessed() -> None:
    """An answer to prepare must say how many rows it has taken."""
    with (
        _answering(lambda _: _http("200 OK", '{"Status": "OK", "Message": ""}')) as (server, _),
        pytest.raises(StoreUnavailable, match=r"answers without numbers of rows: \{'Status': 'OK'"),
    ):
        server.open_client().prepare("one")
