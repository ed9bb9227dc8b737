"""What a simulated kazoo client asks its server for: requests, transactions, and the results that it waits for."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.simulation.scheduler import SimEvent
from tests.simulation.zookeeper import Op

if TYPE_CHECKING:
    from tests.simulation.kazoo_client import SimKazooClient

Request = Callable[[int], Any]
"""Called in the server, with the number of the session."""


class SimAsyncResult:
    """As kazoo's IAsyncResult."""

    def __init__(self, client: SimKazooClient) -> None:
        self._client = client
        self._event = SimEvent(client.process.world)
        self._value: Any = None
        self._error: Exception | None = None

    def wait(self, timeout: float | None = None) -> bool:
        return self._event.wait(timeout)

    def ready(self) -> bool:
        return self._event.is_set()

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        if block:
            self._event.wait(timeout)
        assert self._event.is_set()
        if self._error is not None:
            raise self._error
        return self._value

    def set(self, value: Any) -> None:
        self._value = value
        self._event.set()

    def set_exception(self, error: Exception) -> None:
        self._error = error
        self._event.set()


def _over_the_wire(version: int) -> int:
    """Return a version as it goes over the wire; struct.error: it does not, and ends kazoo's thread."""
    (sent,) = struct.unpack(">i", struct.pack(">i", version))
    return int(sent)


class SimTransaction:
    """As kazoo's TransactionRequest."""

    def __init__(self, client: SimKazooClient) -> None:
        self._client = client
        self.ops: list[Op] = []

    def create(self, path: str, value: bytes = b"", acl: Any = None, ephemeral: bool = False) -> None:
        self.ops.append(Op("create", path, value, -1, ephemeral))

    def delete(self, path: str, version: int = -1) -> None:
        self.ops.append(Op("delete", path, b"", _over_the_wire(version)))

    def set_data(self, path: str, value: bytes, version: int = -1) -> None:
        self.ops.append(Op("set", path, value, _over_the_wire(version)))

    def check(self, path: str, version: int) -> None:
        self.ops.append(Op("check", path, b"", _over_the_wire(version)))

    def commit_async(self) -> SimAsyncResult:
        ops = tuple(self.ops)
        server = self._client.server
        return self._client.request(lambda number: server.multi(number, ops), write=True)

    def commit(self) -> Any:
        return self._client.got(self.commit_async())


class Sent(NamedTuple):
    """When a request was sent, and by which thread; whether it asks whose the topology is, and its answer proves it."""

    at: float
    thread: str
    reads_owner: bool
    proves: bool


def refused(answer: Any) -> bool:
    """Return whether an answer says that nothing was done."""
    return isinstance(answer, Exception) or (isinstance(answer, list) and any(isinstance(r, Exception) for r in answer))
