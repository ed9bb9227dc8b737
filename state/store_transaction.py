"""StoreTransaction: one transaction of a store, shared by all committers, tasks and maps of one commit phase."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from stormline.state.connection import StoreConnection
from stormline.state.fence import Fence, is_stored
from stormline.state.table import Table
from stormline.state.table_transaction import TableTransaction
from stormline.topology.commit_participants import CommitToken

if TYPE_CHECKING:
    from stormline.state.store_resource import StoreResource
    from stormline.topology.serialization import Registry

log = logging.getLogger("stormline")


class StoreTransaction:
    """Takes part in a commit phase. Tasks may use it side by side: one waits for the other.

    `stored`: the database holds this transaction already: the driver ended, or lost its turn, before it was recorded.
    """

    def __init__(
        self,
        resource: StoreResource,
        connection: StoreConnection,
        token: CommitToken,
        registry: Registry,
        fence: Fence | None,
    ) -> None:
        self._resource = resource
        self._connection = connection
        self._found = fence
        self._registry = registry
        self.token = token
        self._tables: dict[str, TableTransaction] = {}
        self._made: set[str] = set()
        self._error: BaseException | None = None
        self._over = False
        self._aborted = False
        self.lock = threading.RLock()
        begins = fence is None or fence.txid == 0
        txid_max = connection.txid_max(token.topology) if begins else 0
        self.stored = is_stored(token, fence, txid_max, resource.name)
        if self.stored:  # an opaque map is put back to what it was: not to what is remembered
            resource.uncertain()

    @contextmanager
    def alone(self) -> Iterator[StoreConnection]:
        """Let one thread work on the connection. What fails there fails the transaction, whoever catches it."""
        with self.lock:
            if self._over:
                raise self._resource.used_late(self.token, lost=not self._aborted)
            try:
                yield self._connection
            except BaseException as error:
                meant = self._connection.translated(error)
                self._error = self._error or meant
                if meant is error:
                    raise
                raise meant from error

    def table(self, table: Table, cache_keys_max: int) -> TableTransaction:
        """Return what this transaction does to a map's table, which is made where there is none."""
        with self.alone() as connection:
            found = self._tables.get(table.name)
            if found is not None and found.table == table:
                return found
            if not self._resource.declare(table):
                connection.make_table(table, self.token.topology)
                self._made.add(table.name)
            cache = self._resource.cache(table, cache_keys_max, self.token, self._found)
            made = TableTransaction(table, self.token, self.stored, self._registry, cache)
            made.open(connection)
            self._tables[table.name] = made
            return made

    @contextmanager
    def own_sql(self) -> Iterator[Any]:
        """Give the database's connection to the user's own SQL, which sees what the maps have stored."""
        with self.alone() as connection:
            self._flush(connection)
            if not self.stored:
                with connection.own_sql() as native:
                    yield native
                return
            connection.savepoint()
            try:
                with connection.own_sql() as native:
                    yield native
            except Exception as error:
                if not connection.violates_constraint(error):
                    raise
            connection.undo_to_savepoint()

    def prepare(self) -> None:
        """Store what the maps hold back, and raise the fence."""
        with self.alone() as connection:
            if self._error is not None:
                raise self._error
            self._flush(connection)
            connection.raise_fence(self.token.topology, self.token.scope, Fence.of(self.token))
            self._over = True  # what a thread of the user's stored from now on would be lost

    def _flush(self, connection: StoreConnection) -> None:
        for table in self._tables.values():
            table.flush(connection)

    def commit(self) -> None:
        """Commit it."""
        try:
            with self.lock:
                self._connection.commit()
        except BaseException:
            self._resource.uncertain()
            raise
        self._resource.made(self._made)
        for table in self._tables.values():
            table.remember()
        self._resource.committed(self.token, Fence.of(self.token))
        self._resource.give_back(self._connection)

    def abort(self) -> None:
        """Roll it back, and close the connection: nobody knows in what state it is."""
        with self.lock:
            self._over = self._aborted = True
            try:
                self._connection.rollback()
            except Exception:
                log.debug("rolling back %s in %s", self.token.attempt, self._resource.name, exc_info=True)
            finally:
                self._connection.close()
