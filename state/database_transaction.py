"""DatabaseTransaction: one transaction of a database, in which transactions of the topology store one after another."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stormline.state.connection import StoreConnection
from stormline.state.fence import Fence
from stormline.state.grouped_rows import GroupedRows
from stormline.state.read_cache import ReadCache
from stormline.state.table import Table
from stormline.topology.commit_participants import CommitToken

if TYPE_CHECKING:
    from stormline.state.store_resource import StoreResource
    from stormline.topology.serialization import Registry

log = logging.getLogger("stormline")


class DatabaseTransaction:
    """What those that share it have in common: the connection, the fence, and what they have stored so far.

    `held`: the tokens of those that have done their part. `broken`: an error after which nobody knows what the database
    holds of this transaction.
    """

    def __init__(
        self,
        resource: StoreResource,
        connection: StoreConnection,
        token: CommitToken,
        registry: Registry,
        fence: Fence | None,
        lock: threading.RLock,
    ) -> None:
        self.resource = resource
        self.connection = connection
        self.registry = registry
        self.found = fence
        self.lock = lock
        self.held: list[CommitToken] = []
        self.broken: BaseException | None = None
        self.over = self.aborted = False
        self.own_sql = False
        self.made: set[str] = set()
        self._first = token
        self._rows: dict[str, GroupedRows] = {}
        self._caches: dict[str, ReadCache] = {}

    def rows(self, table: Table) -> GroupedRows:
        """Return what those before have made of a table's rows."""
        if table.name not in self._rows:
            self._rows[table.name] = GroupedRows(table, self._first.txid)
        return self._rows[table.name]

    def cache(self, table: Table, keys_max: int) -> ReadCache:
        """Return what is remembered of a table from one transaction of the database to the next."""
        if table.name not in self._caches:
            self._caches[table.name] = self.resource.cache(table, keys_max, self._first, self.found)
        return self._caches[table.name]

    @contextmanager
    def working(self) -> Iterator[StoreConnection]:
        """Work on the connection alone; an error of the driver's becomes what it means."""
        with self.lock:
            try:
                yield self.connection
            except BaseException as error:
                meant = self.connection.translated(error)
                if meant is error:
                    raise
                raise meant from error

    def flush(self, connection: StoreConnection) -> None:
        """Give the database what those before have stored."""
        for rows in self._rows.values():
            rows.flush(connection)

    def raise_fence(self, connection: StoreConnection, token: CommitToken, fence: Fence) -> None:
        """Store what this transaction leaves behind."""
        self._left = fence
        connection.raise_fence(token.topology, token.scope, fence)

    def commit(self) -> None:
        """Commit it, and remember what it held."""
        try:
            with self.working() as connection:
                connection.commit()
        except BaseException:
            self.resource.uncertain()
            raise
        self.over = True
        self.resource.made(self.made)
        for name, rows in self._rows.items():
            rows.remember(self._caches[name])
        self.resource.committed(self._first, self._left)
        self.resource.give_back(self.connection, self.own_sql)

    def abort(self) -> None:
        """Roll it back, and close the connection: nobody knows in what state it is."""
        with self.lock:
            if self.over:
                return
            self.over = self.aborted = True
            try:
                self.connection.rollback()
            except Exception:
                log.debug("rolling back %s in %s", self._first.attempt, self.resource.name, exc_info=True)
            finally:
                self.connection.close()
