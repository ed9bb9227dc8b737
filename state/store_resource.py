"""StoreResource: a store as one process uses it for one topology: its connections, and what it knows of the tables."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from stormline.state.connection import StoreConnection
from stormline.state.database_transaction import DatabaseTransaction
from stormline.state.errors import InvalidStore, StoreFailed, StoreUnavailable
from stormline.state.fence import Fence
from stormline.state.read_cache import ReadCache
from stormline.state.store_transaction import StoreTransaction
from stormline.state.table import Table
from stormline.topology.commit_participants import WHOLE_TOPOLOGY, CommitToken

if TYPE_CHECKING:
    from stormline.state.store import Store
    from stormline.topology.serialization import Registry


class StoreResource:
    """The connections of one store: one for each transaction that is under way, kept for the next ones.

    `make_lock`: of a transaction, which tasks use side by side.
    """

    def __init__(self, store: Store, make_lock: Callable[[], Any] = threading.RLock) -> None:
        self.name = str(store)
        self._make_lock = make_lock
        self._store = store
        self._idle: list[tuple[StoreConnection, bool]] = []
        self._declared: dict[str, Table] = {}
        self._made: set[str] = set()
        self._caches: dict[str, ReadCache] = {}
        self._last: Fence | None = None
        self._late: StoreFailed | None = None
        self._lock = threading.Lock()

    def begin(self, token: CommitToken, registry: Registry) -> StoreTransaction:
        """Begin a transaction of the database, its fence locked.

        Raises:
            StoreFailed: something was stored too late for an earlier one, and is lost.
        """
        self.raise_if_late()
        connection, fence = self._begun(token)
        try:
            shared = DatabaseTransaction(self, connection, token, registry, fence, self._make_lock())
            return StoreTransaction.begun(shared, token)
        except BaseException:
            connection.close()
            raise

    def _begun(self, token: CommitToken) -> tuple[StoreConnection, Fence | None]:
        """Return a connection that has locked the fence.

        The server may have closed an idle one meanwhile, and then probably all of them; each that nobody told us of
        takes a time-out to find out. So the first that fails is the last that is tried.
        """
        if (idle := self._pop()) is not None:
            connection, own_sql = idle
            try:
                return connection, self._locked(connection, token, own_sql)
            except StoreUnavailable:
                self.close()
        connection = self._store.connect()
        return connection, self._locked(connection, token)

    @staticmethod
    def _locked(connection: StoreConnection, token: CommitToken, own_sql: bool = False) -> Fence | None:
        try:
            if own_sql:
                connection.reset()
            connection.begin()
            return connection.lock_fence(token.topology, token.scope)
        except BaseException:
            connection.close()
            raise

    def _pop(self) -> tuple[StoreConnection, bool] | None:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def give_back(self, connection: StoreConnection, own_sql: bool) -> None:
        """Keep a connection whose transaction has ended well; `own_sql` of the user's ran in its session."""
        with self._lock:
            self._idle.append((connection, own_sql))

    def raise_if_late(self) -> None:
        """Raise what nobody may have heard: something was stored for a transaction that had ended."""
        if self._late is not None:
            raise self._late

    def used_late(self, token: CommitToken, lost: bool) -> StoreFailed:
        """Return what to tell one who uses a transaction that has ended.

        Nobody may hear it: it is a thread of the user's own. Where what it stores is lost, the next transaction fails.
        """
        error = StoreFailed(
            f"{self.name} was used after the commit of {token.attempt} had ended; open its maps anew in each "
            "finish_batch(), and let a thread of your own that uses them end before finish_batch() does"
        )
        if lost:
            self._late = self._late or error
        return error

    # ------------------------------------------------------------------------------------ tables

    def declare(self, table: Table) -> bool:
        """Record a map's table; return whether it was made, or checked, in this process.

        Raises:
            InvalidStore: another map stores there.
        """
        with self._lock:
            other = self._declared.setdefault(table.name, table)
        if other != table:
            raise InvalidStore(
                f"two maps store in table {table.name!r} of {self.name}: {other.described()}, and "
                f"{table.described()}; give each a table of its own"
            )
        return table.name in self._made

    def made(self, tables: set[str]) -> None:
        """Record that tables are there, durably."""
        self._made |= tables

    # ------------------------------------------------------------------------------------ the read cache

    def cache(self, table: Table, keys_max: int, token: CommitToken, fence: Fence | None) -> ReadCache:
        """Return what is remembered of a table.

        It is right where this process stored what the fence says, and so nobody of the topology has stored since.
        On the executors nothing is remembered: other tasks store between, under fences of their own.
        """
        if token.scope != WHOLE_TOPOLOGY:
            return ReadCache(0)
        with self._lock:
            if not keys_max:  # another declaration of the map may remember what this one changes
                self._caches.pop(table.name, None)
                return ReadCache(0)
            if fence != self._last:
                self._caches.clear()
            return self._caches.setdefault(table.name, ReadCache(keys_max))

    def committed(self, token: CommitToken, fence: Fence) -> None:
        """Record that this process has stored what the fence says now."""
        if token.scope == WHOLE_TOPOLOGY:
            with self._lock:
                self._last = fence

    def uncertain(self) -> None:
        """Record that nobody knows what is stored."""
        with self._lock:
            self._last = None
            self._caches.clear()

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection, _ in idle:
            with contextlib.suppress(Exception):
                connection.close()
