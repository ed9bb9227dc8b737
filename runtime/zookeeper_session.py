"""ZooKeeperSession: one session with ZooKeeper, in which no call waits for ever."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoAuthError, NodeExistsError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState

from stormline.runtime.errors import ZooKeeperDenied, ZooKeeperUnreachable
from stormline.topology.config import ZOOKEEPER_PORT, ZOOKEEPER_SERVERS

CONNECTION_ERRORS = (KazooException, KazooTimeoutError)
"""What a call raises that may or may not have been done, once the answers of the server are handled."""

STOP_SECS = 2.0
POLL_SECS = 0.1

# kazoo waits for the answer to a connection request as long as the session may last, divided by the hosts it knows.
# A starting server leaves such requests unanswered for ever, and one of them must not cost the session.
HOSTS_REPEATED = 3

Listener = Callable[[str], None]


class ZooKeeperSession:
    """A session with the server at `hosts`; `node` is the topology's znode, for messages."""

    def __init__(self, client: Any, hosts: str, node: str, connection_timeout_ms: int) -> None:
        self._client = client
        self._hosts = hosts
        self._node = node
        self._connection_timeout_ms = connection_timeout_ms
        self._up = threading.Event()
        self._ended = False
        self._listeners: list[Listener] = []
        client.add_listener(self._changed)

    @classmethod
    def connect(
        cls, hosts: str, node: str, session_timeout_ms: int, connection_timeout_ms: int, debug: bool
    ) -> ZooKeeperSession:
        """Begin a session.

        Raises:
            ZooKeeperUnreachable: no ZooKeeper answered within the connection timeout.
        """
        logger = logging.getLogger("stormline.kazoo.debug" if debug else "stormline.kazoo")
        logger.setLevel(logging.DEBUG if debug else logging.CRITICAL + 1)
        client = KazooClient(
            ",".join([hosts] * HOSTS_REPEATED),
            timeout=session_timeout_ms / 1000,
            connection_retry={"max_tries": -1, "delay": 0.05, "backoff": 2, "max_delay": 1.0},
            logger=logger,
        )
        session = cls(client, hosts, node, connection_timeout_ms)
        client.start_async()
        if not session._up.wait(connection_timeout_ms / 1000):
            session.stop()
            raise session._unreachable("does not answer")
        return session

    def listen(self, listener: Listener) -> None:
        """Call `listener`, which must not wait, with each `KazooState` that the connection gets into."""
        self._listeners.append(listener)

    def wait_connected(self, deadline: float) -> bool:
        """Wait until connected, but not past `deadline` (monotonic) or the session's end; tell which."""
        while not self._up.wait(POLL_SECS) and not self._ended and time.monotonic() < deadline:
            pass
        return self._up.is_set() and time.monotonic() < deadline

    def multi(self, fill: Callable[[Any], None], deadline: float) -> list[Any]:
        """Send one transaction, once, and return its results, among them exceptions where it was refused.

        Raises:
            CONNECTION_ERRORS: nobody knows yet whether it was applied.
        """
        transaction = self._client.transaction()
        fill(transaction)
        results: list[Any] = self._answer(transaction.commit_async(), deadline)
        return results

    def get_now(self, path: str, deadline: float, watch: Callable[[Any], None] | None = None) -> tuple[bytes, Any]:
        """Return data and stat of a znode, not older than this call.

        Raises:
            NoNodeError: it does not exist.
            CONNECTION_ERRORS: no answer.
        """
        self._answer(self._client.sync_async(path), deadline)
        data, stat = self._answer(self._client.get_async(path, watch), deadline)
        return data, stat

    def sync(self, path: str) -> None:
        """Let later reads see all that was applied before this call."""
        self._repeat(lambda deadline: self._answer(self._client.sync_async(path), deadline), path)

    def get_all(self, paths: Sequence[str]) -> list[tuple[bytes, Any]]:
        """Return data and stat of each znode; raise `NoNodeError` where one does not exist."""

        def get(deadline: float) -> list[tuple[bytes, Any]]:
            pending = [self._client.get_async(path) for path in paths]
            return [self._answer(result, deadline) for result in pending]

        nodes: list[tuple[bytes, Any]] = self._repeat(get, paths[0] if paths else self._node)
        return nodes

    def children(self, path: str) -> list[str]:
        """Return the sorted names of the znodes below one; raise `NoNodeError` where it does not exist."""
        names: list[str] = self._repeat(
            lambda deadline: self._answer(self._client.get_children_async(path), deadline), path
        )
        return sorted(names)

    def ensure(self, path: str) -> None:
        """Create a znode and those above it, where they do not exist."""
        with contextlib.suppress(NodeExistsError):
            if self._repeat(lambda deadline: self._answer(self._client.exists_async(path), deadline), path) is None:
                above = path.rpartition("/")[0]
                if above:
                    self.ensure(above)
                self._repeat(lambda deadline: self._answer(self._client.create_async(path), deadline), path)

    def denied(self, path: str) -> ZooKeeperDenied:
        """Return the error for a znode that access control keeps from us."""
        return ZooKeeperDenied(
            f"ZooKeeper at {self._hosts} denies access to {path}: its access control list does not let this driver "
            "read and write it; change the list, or use another transactional.zookeeper.root"
        )

    def stop(self) -> None:
        """End the session: its ephemeral nodes vanish at once where the server can be reached."""
        thread = threading.Thread(target=self._stop, name="stormline-zookeeper-stop", daemon=True)
        thread.start()
        thread.join(STOP_SECS)

    def _stop(self) -> None:
        with contextlib.suppress(Exception):  # best effort: there may be no connection to say goodbye on
            self._client.stop()
            self._client.close()

    def _changed(self, state: str) -> None:
        if state == KazooState.CONNECTED:
            self._up.set()
        else:
            self._up.clear()
        for listener in self._listeners:
            listener(state)
        self._ended |= state == KazooState.LOST  # last: whoever waits for it finds that the listeners know

    def _answer(self, result: Any, deadline: float) -> Any:
        """Wait for an answer, while there can be one: kazoo forgets requests made while a session ends."""
        while not result.wait(POLL_SECS):
            if self._ended or time.monotonic() > deadline:
                raise KazooTimeoutError("no answer")
        return result.get(block=False)

    def _repeat(self, call: Callable[[float], Any], path: str) -> Any:
        """Do what may be done twice, until the server has answered."""
        deadline = time.monotonic() + self._connection_timeout_ms / 1000
        while True:
            try:
                return call(deadline)
            except NoAuthError:
                raise self.denied(path) from None
            except (NoNodeError, NodeExistsError):
                raise
            except CONNECTION_ERRORS as error:
                if not self.wait_connected(deadline):
                    raise self._unreachable(f"went away ({type(error).__name__})") from None

    def _unreachable(self, what: str) -> ZooKeeperUnreachable:
        return ZooKeeperUnreachable(
            f"no ZooKeeper for {self._node}: {self._hosts} {what} within {self._connection_timeout_ms} ms; check "
            f"that a ZooKeeper server runs there, and the configuration keys {ZOOKEEPER_SERVERS} and {ZOOKEEPER_PORT}"
        )
