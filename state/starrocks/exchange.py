"""One HTTP request as StarRocks wants it: the body goes only where it is wanted, the password wherever it is sent on.

A front end answers with a redirect to a back end, which has another port. Python's HTTP libraries drop `Authorization`
there, or send the body to the front end in spite of `Expect: 100-continue`.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

REDIRECTS_MAX = 3
"""From a front end to the leading one, and on to a back end; one more than that needs."""
_CONTINUE = b"HTTP/1.1 100"
_PEEK_SECS = 0.001


@dataclass(frozen=True)
class Answer:
    """What the last server said."""

    code: int
    body: bytes


class NoAnswer(Exception):
    """Nobody answered; `sent` says whether somebody may have got the request, and done it."""

    def __init__(self, message: str, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


def exchange(
    address: tuple[str, int], method: str, target: str, headers: Mapping[str, str], body: bytes, timeout_secs: float
) -> Answer:
    """Make a request, follow its redirects, and return the answer.

    Raises:
        NoAnswer: There is none.
    """
    sent = False
    for _ in range(REDIRECTS_MAX + 1):
        where = f"{address[0]}:{address[1]}"
        connection = HTTPConnection(*address, timeout=timeout_secs)
        try:
            connection.connect()
            sent = True
            code, location, answer = _once(connection, method, target, headers, body, timeout_secs)
        except (OSError, HTTPException) as error:
            raise NoAnswer(f"{where}: {type(error).__name__}: {error}", sent) from error
        finally:
            connection.close()
        if code not in (301, 302, 307, 308):
            return Answer(code, answer)
        address, target = _split(location, where)
    raise NoAnswer(f"{where}: redirects to {location}, after {REDIRECTS_MAX} other redirects", False)


def _once(
    connection: HTTPConnection, method: str, target: str, headers: Mapping[str, str], body: bytes, timeout_secs: float
) -> tuple[int, str, bytes]:
    connection.putrequest(method, target, skip_accept_encoding=True)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.putheader("Expect", "100-continue")
    connection.putheader("Content-Length", str(len(body)))
    connection.endheaders()
    if body and _wanted(connection.sock, timeout_secs):
        # Where the server ends in the middle, an answer may be there all the same: why it does not want the rest.
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.send(body)
    response = connection.getresponse()
    return response.status, response.headers.get("Location", ""), response.read()


def _wanted(connection: socket.socket, timeout_secs: float) -> bool:
    """Return whether the server asks for the body, rather than answer at once. Nothing is taken from the connection."""
    deadline = time.monotonic() + timeout_secs
    while True:
        seen = connection.recv(len(_CONTINUE), socket.MSG_PEEK)
        if len(seen) == len(_CONTINUE) or not seen or time.monotonic() > deadline:
            return seen == _CONTINUE
        time.sleep(_PEEK_SECS)


def _split(location: str, where: str) -> tuple[tuple[str, int], str]:
    try:
        parts = urlsplit(location)
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError(location)
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        return (parts.hostname, parts.port or 80), target
    except ValueError:
        raise NoAnswer(f"{where}: redirects to {location!r}, expected http://host:port/…", False) from None
