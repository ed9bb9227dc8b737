"""A ZooKeeper server: znodes with versions, transactions, sessions that expire, watches. It never forgets.

It is an ensemble as far as its clients can tell: what a session reads may be as old as the last that it has seen of it,
until it writes or asks for `sync`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kazoo.exceptions import (
    BadVersionError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
)
from kazoo.protocol.states import EventType, WatchedEvent

from tests.simulation.scheduler import Scheduler


class Stat(NamedTuple):
    """What the code under test looks at of a znode's stat."""

    version: int
    ephemeralOwner: int
    numChildren: int


@dataclass(slots=True)
class Node:
    """A znode."""

    data: bytes
    version: int = 0
    session: int = 0
    children: set[str] = field(default_factory=set)

    def stat(self) -> Stat:
        return Stat(self.version, self.session, len(self.children))

    def copy(self) -> Node:
        return Node(self.data, self.version, self.session, set(self.children))


class Op(NamedTuple):
    """One operation of a transaction; version -1: any."""

    kind: str
    path: str
    data: bytes = b""
    version: int = -1
    ephemeral: bool = False


@dataclass(slots=True)
class Session:
    """A session; its `connection` is a `kazoo_client.Wire`. None: nothing is heard of its client, it will expire.

    Args:
        view: the znodes as its follower knows them, where that lags.
        behind: what has changed since then, with when it did first, and how.
    """

    number: int
    timeout_secs: float
    connection: Any = None
    lapses: int = 0
    watches: set[str] = field(default_factory=set)
    view: dict[str, Node] | None = None
    behind: dict[str, tuple[float, WatchedEvent]] = field(default_factory=dict)


class Change(NamedTuple):
    """One znode changed by a transaction: data before and after, None where it did not or does not exist."""

    path: str
    before: bytes | None
    after: bytes | None


def _event(change: Change) -> WatchedEvent:
    """Return what a watch is told of a change."""
    return WatchedEvent(EventType.DELETED if change.after is None else EventType.CHANGED, "CONNECTED", change.path)


OnApplied = Callable[[int, Sequence[Change]], None]


class ZooKeeper:
    """The server. `on_applied` sees every transaction that changed something, with the session that sent it."""

    def __init__(self, world: Scheduler, on_applied: OnApplied) -> None:
        self._world = world
        self._on_applied = on_applied
        self._sessions: dict[int, Session] = {}
        self._number = 0x100
        self.nodes: dict[str, Node] = {"": Node(b"")}
        self.reachable = True

    # ------------------------------------------------------------------------------------ sessions

    def connect(self, number: int | None, timeout_secs: float, connection: Any) -> int | None:
        """Begin a session, or go on with one; None: it has expired."""
        if number is None:
            self._number += 1
            number = self._number
            self._sessions[number] = Session(number, timeout_secs)
        session = self._sessions.get(number)
        if session is None:
            return None
        session.connection = connection
        session.lapses += 1
        session.watches.clear()
        return number

    def lag(self, number: int, secs: float) -> None:
        """Let a session's follower stay behind from now on; also when its client connects again meanwhile."""
        session = self._sessions.get(number)
        if session is not None and session.view is None:
            session.view = self.backup()
            self._world.after(secs, self.catch_up, number)

    def catch_up(self, number: int) -> None:
        """Let a session see all that was applied."""
        session = self._sessions.get(number)
        if session is None or session.view is None:
            return
        session.view = None
        behind, session.behind = session.behind, {}
        for path, (_, event) in behind.items():
            if path in session.watches and session.connection is not None:
                session.watches.discard(path)
                session.connection.watched(event)

    def up_to_date(self, number: int) -> bool:
        """Return whether a session lives, and sees all that was applied."""
        return number in self._sessions and self._sessions[number].view is None

    def behind_secs(self, number: int, path: str) -> float:
        """Return for how long a znode has been otherwise than this session reads it."""
        session = self._sessions.get(number)
        if session is None or path not in session.behind:
            return 0.0
        return self._world.now - session.behind[path][0]

    def backup(self) -> dict[str, Node]:
        """Return all znodes as they are."""
        return {path: node.copy() for path, node in self.nodes.items()}

    def hears(self, number: int, connection: Any) -> bool:
        """Return whether what comes over this connection is the session's."""
        session = self._sessions.get(number)
        return session is not None and session.connection is connection

    def silent(self, number: int, connection: Any, *, closed: bool) -> None:
        """Nothing more is heard of a client: after the timeout its session expires. `closed`: nor can it be told."""
        session = self._sessions.get(number)
        if session is not None and session.connection is connection:
            session.lapses += 1
            self._world.after(session.timeout_secs, self._expire_if_silent, number, session.lapses)
            if closed:
                session.connection = None

    def connections_of(self, client: Any) -> list[tuple[int, Any]]:
        """Return the sessions of a client, with the connections over which they are heard."""
        sessions = [session for session in self._sessions.values() if session.connection is not None]
        return [(s.number, s.connection) for s in sessions if s.connection.client is client]

    def process_of(self, number: int) -> Any:
        """Return the process of a session's client; None: the session has ended, or its connection was closed."""
        session = self._sessions.get(number)
        return None if session is None or session.connection is None else session.connection.client.process

    def heard(self, number: int, connection: Any) -> None:
        """The client is heard again, over the same connection."""
        session = self._sessions.get(number)
        if session is not None and session.connection is connection:
            session.lapses += 1

    def _expire_if_silent(self, number: int, lapses: int) -> None:
        session = self._sessions.get(number)
        if session is not None and session.lapses == lapses:
            self.expire(number)

    def expire(self, number: int) -> None:
        """End a session; its client hears of it when it looks."""
        session = self._sessions.pop(number, None)
        if session is None:
            return
        ephemeral = sorted(path for path, node in self.nodes.items() if node.session == number)
        changes = [self._delete(path) for path in ephemeral]
        if session.connection is not None:
            session.connection.closed_by_server()
        self._applied(number, changes)

    def cut_off(self) -> None:
        """Nobody reaches the server any more, until it is reachable again; sessions go on expiring."""
        self.reachable = False
        for session in list(self._sessions.values()):
            if session.connection is not None:
                session.connection.closed_by_server()

    # ------------------------------------------------------------------------------------ requests

    def get(self, number: int, path: str, watch: bool) -> tuple[bytes, Stat]:
        node = self._seen(number).get(path)
        if node is None:
            raise NoNodeError
        if watch:
            self._sessions[number].watches.add(path)
        return node.data, node.stat()

    def children(self, number: int, path: str) -> list[str]:
        node = self._seen(number).get(path)
        if node is None:
            raise NoNodeError
        return sorted(node.children)

    def exists(self, number: int, path: str) -> Stat | None:
        node = self._seen(number).get(path)
        return None if node is None else node.stat()

    def sync(self, number: int, path: str) -> str:
        self.catch_up(number)
        return path

    def create(self, number: int, path: str, data: bytes) -> str:
        (result,) = self.multi(number, [Op("create", path, data)])
        if isinstance(result, Exception):
            raise result
        return path

    def restore(self, nodes: dict[str, Node]) -> None:
        """Put a backup in the place of all that is there; no session is left, then and now."""
        for number in list(self._sessions):
            self.expire(number)
        self.nodes = {path: node.copy() for path, node in nodes.items()}
        for path in [path for path, node in self.nodes.items() if node.session]:
            self._delete(path)

    def remove(self, path: str) -> None:
        """Delete a znode, as an operator may."""
        self._applied(0, [self._delete(path)])

    def multi(self, number: int, ops: Sequence[Op]) -> list[Any]:
        """Apply all of `ops`, or none: then the results are exceptions. Its session sees what came before it."""
        self.catch_up(number)
        undo: list[tuple[str, Node | None]] = []
        changes: list[Change] = []
        results: list[Any] = []
        for position, op in enumerate(ops):
            try:
                results.append(self._apply(number, op, undo, changes))
            except (NoNodeError, NodeExistsError, BadVersionError, NotEmptyError) as error:
                for path, node in reversed(undo):
                    self._restore(path, node)
                after = len(ops) - position - 1
                return [*(RolledBackError() for _ in range(position)), error] + [RuntimeInconsistency()] * after
        self._applied(number, changes)
        return results

    # ------------------------------------------------------------------------------------ inside

    def _seen(self, number: int) -> dict[str, Node]:
        session = self._sessions.get(number)
        return self.nodes if session is None or session.view is None else session.view

    def _node(self, path: str) -> Node:
        node = self.nodes.get(path)
        if node is None:
            raise NoNodeError
        return node

    def _apply(self, number: int, op: Op, undo: list[tuple[str, Node | None]], changes: list[Change]) -> Any:
        path = op.path
        node = self.nodes.get(path)
        if op.kind == "create":
            if node is not None:
                raise NodeExistsError
            self._node(path.rpartition("/")[0])
            undo.append((path, None))
            self._restore(path, Node(op.data, 0, number if op.ephemeral else 0))
            changes.append(Change(path, None, op.data))
            return path
        if node is None:
            raise NoNodeError
        if op.version not in (-1, node.version):
            raise BadVersionError
        if op.kind == "check":
            return True
        undo.append((path, Node(node.data, node.version, node.session, node.children)))
        if op.kind == "delete":
            if node.children:
                raise NotEmptyError
            changes.append(self._delete(path))
            return True
        changes.append(Change(path, node.data, op.data))
        node.data = op.data
        node.version = (node.version + 1 + (1 << 31)) % (1 << 32) - (1 << 31)  # 32 bits, as a 3.9 server's
        return node.stat()

    def _restore(self, path: str, node: Node | None) -> None:
        above, _, name = path.rpartition("/")
        if node is None:
            del self.nodes[path]
            self.nodes[above].children.discard(name)
        else:
            self.nodes[path] = node
            self.nodes[above].children.add(name)

    def _delete(self, path: str) -> Change:
        change = Change(path, self.nodes[path].data, None)
        self._restore(path, None)
        return change

    def _applied(self, number: int, changes: Sequence[Change]) -> None:
        for session in self._sessions.values():
            for change in changes:
                if session.view is not None:
                    session.behind.setdefault(change.path, (self._world.now, _event(change)))
                elif change.path in session.watches and session.connection is not None:
                    session.watches.discard(change.path)
                    session.connection.watched(_event(change))
        if changes:
            self._on_applied(number, changes)
