"""ZooKeeperSession: one session with ZooKeeper, in which no call waits for ever."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Any

from kazoo.exceptions import (
    AuthFailedError,
    InvalidACLError,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState

from stormline.runtime.errors import ZooKeeperDenied, ZooKeeperUnreachable
from stormline.runtime.world.world import World
from stormline.runtime.zookeeper.polling import kazoo_client
from stormline.runtime.zookeeper.security import OPEN, Credentials, ZooKeeperSecurity
from stormline.runtime.zookeeper.session_keeper import KeepAlive
from stormline.topology.config import (
    ZOOKEEPER_AUTH_PAYLOAD,
    ZOOKEEPER_AUTH_SCHEME,
    ZOOKEEPER_PORT,
    ZOOKEEPER_SERVERS,
    ZOOKEEPER_SSL_ENABLE,
)
from stormline.topology.secrets import HIDE_SECRETS, without_secrets

CONNECTION_ERRORS = (KazooException, KazooTimeoutError)
"""What a call raises that may or may not have been done, once the answers of the server are handled."""

STOP_SECS = 2.0
POLL_SECS = 0.1

# kazoo waits for the answer to a connection request as long as the session may last, divided by the hosts it knows.
# A starting server leaves such requests unanswered for ever, and one of them must not cost the session.
HOSTS_REPEATED = 3

Listener = Callable[[str], None]

MakeClient = Callable[..., Any]
"""What makes kazoo's client, as `kazoo_client` does."""


class ZooKeeperSession:
    """A session with the server at `hosts`; `node` is the topology's znode, for messages."""

    def __init__(
        self,
        world: World,
        client: Any,
        hosts: str,
        node: str,
        connection_timeout_ms: int,
        security: ZooKeeperSecurity,
        credentials: Credentials,
        said: _LastWarning,
    ) -> None:
        self._world = world
        self._client = client
        self._security = security
        self._credentials = credentials
        self._said = said
        self._hosts = hosts
        self._node = node
        self._connection_timeout_ms = connection_timeout_ms
        self._up = world.event()
        self._ended = False
        self._release: Callable[[], None] | None = None
        self._listeners: list[Listener] = []
        client.add_listener(self._changed)

    @classmethod
    def connect(
        cls,
        world: World,
        hosts: str,
        node: str,
        session_timeout_ms: int,
        connection_timeout_ms: int,
        debug: bool,
        security: ZooKeeperSecurity = OPEN,
        keep_alive: KeepAlive | None = None,
        make_client: MakeClient = kazoo_client,
    ) -> ZooKeeperSession:
        """Begin a session, and have it kept alive where somebody can; secrets are read here.

        Raises:
            ZooKeeperUnreachable: no ZooKeeper answered within the connection timeout.
            SecretMissing, InvalidConfig: what `security` refers to cannot be used.
        """
        credentials = security.credentials()
        said = _LastWarning()
        client = make_client(
            ",".join([hosts] * HOSTS_REPEATED),
            timeout=session_timeout_ms / 1000,
            connection_retry={"max_tries": -1, "delay": 0.05, "backoff": 2, "max_delay": 1.0},
            logger=_kazoo_logger(said, debug),
            **credentials.client_options,
        )
        session = cls(world, client, hosts, node, connection_timeout_ms, security, credentials, said)
        client.start_async()
        if not session._up.wait(connection_timeout_ms / 1000):
            session.stop()
            raise session._unreachable("does not answer")
        if keep_alive is not None:
            try:
                session_id, _ = client.client_id
                session._release = keep_alive(session_id, session_timeout_ms)
            except BaseException:
                session.stop()
                raise
        return session

    @property
    def acl_bytes(self) -> int:
        """What each znode that is created adds to a request, beside its path and data, for whose it is."""
        return self._credentials.acl_bytes

    def listen(self, listener: Listener) -> None:
        """Call `listener`, which must not wait, with each `KazooState` that the connection gets into."""
        self._listeners.append(listener)

    def wait_connected(self, deadline: float) -> bool:
        """Wait until connected, but not past `deadline` (monotonic) or the session's end; return which."""
        while not self._up.wait(POLL_SECS) and not self._ended and self._world.monotonic() < deadline:
            pass
        return self._up.is_set() and self._world.monotonic() < deadline

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

    def check_acls(self, paths: Sequence[str]) -> None:
        """Check that nobody else can change these znodes, where they are to be ours alone.

        Raises:
            InsecureState: somebody can.
            NoNodeError: one does not exist.
        """
        if not self._credentials.protects or not paths:
            return

        def get(deadline: float) -> list[Any]:
            pending = [self._client.get_acls_async(path) for path in paths]
            return [self._answer(result, deadline)[0] for result in pending]

        for path, acl in zip(paths, self._repeat(get, paths[0]), strict=True):
            self._credentials.check(path, acl)

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
        scheme = self._security.scheme
        if scheme is None:
            remedy = f"say who it is by {ZOOKEEPER_AUTH_SCHEME} and {ZOOKEEPER_AUTH_PAYLOAD}"
        else:
            remedy = f"correct user and password in {self._security.payload}"
        return ZooKeeperDenied(
            f"ZooKeeper at {self._hosts} denies access to {path}: its access control list does not let this driver "
            f"({f'authenticated by {scheme}' if scheme else 'which has not said who it is'}) read and write it; "
            f"{remedy}, change the list, or use another transactional.zookeeper.root"
        )

    def refused(self, path: str, error: Exception) -> ZooKeeperDenied:
        """Return the error for a write that the server refuses, and would refuse again."""
        return ZooKeeperDenied(
            f"ZooKeeper at {self._hosts} refuses what is to be stored at {path}: {type(error).__name__}; nothing was "
            "written. Look into its log, and for a quota of this path (listquota in its command line)"
        )

    def not_authenticated(self) -> ZooKeeperDenied:
        """Return the error for a server that does not take this driver for who it says it is."""
        return ZooKeeperDenied(
            f"ZooKeeper at {self._hosts} does not accept {ZOOKEEPER_AUTH_SCHEME}={self._security.scheme} for "
            f"{self._node} ({self._said.text or 'it rejects such an access control list'}); correct user and password "
            f"in {self._security.payload}, and check that the server has this scheme switched on"
        )

    def stop(self) -> None:
        """End the session: its ephemeral nodes vanish at once where the server can be reached."""
        self._world.start_thread("stormline-zookeeper-stop", self._stop).join(STOP_SECS)

    def _stop(self) -> None:
        with contextlib.suppress(Exception):  # its JVM may have gone
            if self._release is not None:
                self._release()
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
            if self._ended or self._world.monotonic() > deadline:
                raise KazooTimeoutError("no answer")
        return result.get(block=False)

    def _repeat(self, call: Callable[[float], Any], path: str) -> Any:
        """Do what may be done twice, until the server has answered."""
        deadline = self._world.monotonic() + self._connection_timeout_ms / 1000
        while True:
            try:
                return call(deadline)
            except NoAuthError:
                raise self.denied(path) from None
            except (AuthFailedError, InvalidACLError):
                raise self.not_authenticated() from None
            except (NoNodeError, NodeExistsError):
                raise
            except CONNECTION_ERRORS as error:
                if not self.wait_connected(deadline):
                    if self._said.auth_failed:
                        raise self.not_authenticated() from None
                    raise self._unreachable(f"went away ({type(error).__name__})") from None

    def _unreachable(self, what: str) -> ZooKeeperUnreachable:
        tls = "" if self._security.tls else "not "
        sasl = " (and SASL: a server without it does not answer)" if self._security.scheme == "sasl" else ""
        said = f" (the last problem, {tls}speaking TLS: {self._said.text})" if self._said.text else ""
        return ZooKeeperUnreachable(
            f"no ZooKeeper for {self._node}: {self._hosts} {what} within {self._connection_timeout_ms} ms{said}; "
            f"check that a ZooKeeper server{sasl} runs there, and the configuration keys "
            f"{ZOOKEEPER_SERVERS}, {ZOOKEEPER_PORT} and {ZOOKEEPER_SSL_ENABLE}"
        )


class _LastWarning(logging.Handler):
    """Keeps the last problem that kazoo told of: it tries again in silence, and does not say why in the end."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.text = ""
        self.auth_failed = False

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the problem that a log record names."""
        message = without_secrets(record.getMessage())
        if record.exc_info and record.exc_info[1] is not None:
            message += f": {without_secrets(str(record.exc_info[1]))}"
        if not message.startswith(("Transition to", "Failed connecting")):
            self.text = message[:300]
        self.auth_failed |= message.startswith("AUTH_FAILED")


def _kazoo_logger(said: _LastWarning, debug: bool) -> logging.Logger:
    """Return a logger that no configuration of the user's reaches: kazoo logs each request, and an address, at will."""
    logger = logging.Logger("stormline.kazoo", logging.DEBUG if debug else logging.WARNING)  # noqa: LOG001
    logger.addFilter(HIDE_SECRETS)
    logger.addHandler(said)
    if debug:
        logger.parent = logging.getLogger("stormline")
    return logger
