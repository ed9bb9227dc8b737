"""A stand-in for Redis: named servers in this process, clients, atomic `multi`, and a pool."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class _Server:
    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.values: dict[str, Any] = {}
        self.hashes: defaultdict[str, dict[str, int]] = defaultdict(dict)


_SERVERS: defaultdict[str, _Server] = defaultdict(_Server)


def flush() -> None:
    """Forget all servers."""
    _SERVERS.clear()


class Redis:
    """A client; its lock stands for a socket, which cannot be copied into another process."""

    def __init__(self, host: str) -> None:
        self._server = _SERVERS[host]
        self._socket = threading.Lock()
        self.closed = False

    def _connected(self) -> _Server:
        if self.closed:
            raise ConnectionError("the connection is closed")
        return self._server

    def get(self, key: str, default: Any = None) -> Any:
        return self._connected().values.get(key, default)

    def set(self, key: str, value: Any) -> None:
        self._connected().values[key] = value

    def mget(self, keys: list[str]) -> list[Any]:
        return [self.get(key) for key in keys]

    def hget(self, name: str, key: str) -> int | None:
        return self._connected().hashes[name].get(key)

    def hgetall(self, name: str) -> dict[str, int]:
        return dict(self._connected().hashes[name])

    def hset(self, name: str, key: str, value: int) -> None:
        self._connected().hashes[name][key] = value

    def hincrby(self, name: str, key: str, by: int) -> None:
        self.hset(name, key, (self.hget(name, key) or 0) + by)

    def multi(self) -> Multi:
        """Begin a list of commands that are carried out all at once, or not at all."""
        return Multi(self)

    def close(self) -> None:
        self.closed = True


class Multi:
    """Commands for `exec`."""

    def __init__(self, client: Redis) -> None:
        self._client = client
        self._commands: list[Callable[[], None]] = []

    def set(self, key: str, value: Any) -> None:
        self._commands.append(lambda: self._client.set(key, value))

    def hincrby(self, name: str, key: str, by: int) -> None:
        self._commands.append(lambda: self._client.hincrby(name, key, by))

    def hset(self, name: str, key: str, value: int) -> None:
        self._commands.append(lambda: self._client.hset(name, key, value))

    def exec(self) -> None:
        with self._client._connected().lock:
            for command in self._commands:
                command()


class Pool:
    """A pool of connections to one host."""

    opened = 0

    def __init__(self, host: str) -> None:
        Pool.opened += 1
        self._host = host
        self._lock = threading.Lock()
        self._idle: list[Redis] = []

    @contextmanager
    def resource(self) -> Iterator[Redis]:
        """Lend a connection."""
        with self._lock:
            connection = self._idle.pop() if self._idle else Redis(self._host)
        yield connection
        with self._lock:
            self._idle.append(connection)
