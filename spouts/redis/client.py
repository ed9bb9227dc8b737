"""What the spout asks a Redis server. Alone in this room knows redis-py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import redis

from stormline.spouts.redis.errors import RedisRefused
from stormline.spouts.redis.positions import Look, State
from stormline.topology.errors import FailedException
from stormline.topology.secrets import resolve_secret

T = TypeVar("T")
Entry = tuple[str, dict[bytes, bytes]]

_AWAY = (redis.ConnectionError, redis.TimeoutError)
_REFUSED = (redis.AuthenticationError,)  # one of the errors of a connection, too
_STATE = (b"entries-added", b"max-deleted-entry-id")


class Found(NamedTuple):
    """Entries, and what was seen beside them in the same moment."""

    look: Look
    entries: list[Entry]


class Client:
    """A connection of one spout task, or of the coordinator."""

    def __init__(self, url: str, password: str, timeout_secs: float) -> None:
        secret = resolve_secret(password, f"the password of {url}") if password else None
        self._url = url
        self._redis: Any = redis.Redis.from_url(
            url, password=secret, socket_timeout=timeout_secs, socket_connect_timeout=timeout_secs
        )

    def state(self, stream: str) -> State | None:
        """Return what the server tells of a stream; None where there is none."""
        return self._asked(lambda: self._look(stream, None, 0)[0], stream)

    def after(self, stream: str, start: str, count: int) -> Found:
        """Return the entries after an id, at most so many, with the state of the stream in the same moment."""

        def ask() -> Found:
            state, found = self._look(stream, start, count)
            there = bool(found) and found[0][0] == start
            entries = found[1:] if there else found
            return Found(Look(state, [i for i, _ in entries[:count]], there, len(entries) <= count), entries[:count])

        return self._asked(ask, stream)

    def between(self, stream: str, start: str, end: str, count: int) -> list[Entry]:
        """Return the entries after an id up to another one, at most so many."""
        return self._asked(
            lambda: _entries(self._redis.execute_command("XRANGE", stream, f"({start}", end, "COUNT", count)), stream
        )

    def close(self) -> None:
        """End the connection."""
        self._redis.close()

    def _look(self, stream: str, start: str | None, count: int) -> tuple[State | None, list[Entry]]:
        pipeline: Any = self._redis.pipeline(transaction=True)
        pipeline.execute_command("XINFO", "STREAM", stream)
        if start is not None:  # itself, and one more: whether it is there, and whether these are all
            pipeline.execute_command("XRANGE", stream, start, "+", "COUNT", count + 2)
        answers = pipeline.execute(raise_on_error=False)
        told = answers[0]
        if isinstance(told, redis.ResponseError) and "no such key" in str(told).lower():
            return None, []
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return self._state(told), _entries(answers[1]) if start is not None else []

    def _state(self, told: Any) -> State:
        pairs = told if isinstance(told, dict) else dict(zip(told[::2], told[1::2], strict=True))
        by_name = {_bytes(name): value for name, value in pairs.items()}
        if not by_name.keys() >= set(_STATE):
            raise RedisRefused(
                f"the server at {self._url} does not say how many entries a stream ever had, so entries could go "
                "unnoticed; Redis 7 or newer does"
            )
        first = by_name[b"first-entry"]
        return State(
            int(by_name[b"length"]),
            int(by_name[b"entries-added"]),
            None if first is None else _text(first[0]),
            _text(by_name[b"last-generated-id"]),
            _text(by_name[b"max-deleted-entry-id"]),
        )

    def _asked(self, ask: Callable[[], T], stream: str) -> T:
        what = f"stream {stream!r} at {self._url}"
        try:
            return ask()
        except _REFUSED as error:
            raise RedisRefused(f"{what} was refused: {error}; check user and password, and that it may read") from error
        except _AWAY as error:
            raise FailedException(f"{what}: {error}") from error
        except redis.ResponseError as error:
            text = str(error)
            if text.startswith(("LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN")):
                raise FailedException(f"{what}: {text}") from error
            raise RedisRefused(
                f"{what} cannot be read: {text}; is there something else than a stream under this name, or may this "
                "user not use XINFO and XRANGE?"
            ) from error


def _entries(answer: Any) -> list[Entry]:
    """Return ids and fields; redis-py has parsed them, or not: that depends on its version."""
    found = []
    for entry_id, fields in answer:
        pairs = fields if isinstance(fields, dict) else dict(zip(fields[::2], fields[1::2], strict=True))
        found.append((_text(entry_id), {_bytes(name): _bytes(value) for name, value in pairs.items()}))
    return found


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()
