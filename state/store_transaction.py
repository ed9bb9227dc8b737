"""StoreTransaction: what one transaction of the topology stores, shared by all tasks and maps of its commit phase.

By itself it is one transaction of the database. In a group (`hold`, `follow`) it is a part of one: those that follow
see what it has stored, and all of them become durable together.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from stormline.state.connection import StoreConnection
from stormline.state.database_transaction import DatabaseTransaction
from stormline.state.fence import Fence, is_behind, stored_by
from stormline.state.table import Table
from stormline.state.table_transaction import TableTransaction
from stormline.topology.commit_participants import CommitToken


class StoreTransaction:
    """Takes part in a commit phase. Tasks may use it side by side: one waits for the other."""

    def __init__(self, shared: DatabaseTransaction, token: CommitToken, fence: Fence | None) -> None:
        self._shared = shared
        self.token = token
        self._fence = fence
        self._tables: dict[str, TableTransaction] = {}
        self._made: set[str] = set()
        self._error: BaseException | None = None
        self._over = False
        self._savepoint = False
        self._undoable = False  # while the user's own SQL runs after a savepoint: whatever that does wrong
        self._dropped = False
        self.lock = shared.lock
        if self.stored:  # an opaque map is put back to what it was: not to what is remembered
            shared.resource.uncertain()

    @classmethod
    def begun(cls, shared: DatabaseTransaction, token: CommitToken) -> StoreTransaction:
        """Return the first one in a transaction of the database.

        Raises:
            StoreMismatch: the database holds another history than the topology's state.
        """
        found = shared.found
        fences = shared.connection.fences(token.topology) if is_behind(found, token) else {}
        return cls(shared, token, stored_by(token, found, fences, shared.resource.name))

    @property
    def stored(self) -> bool:
        """Whether the database holds it already: the driver ended, or lost its turn, before it was recorded."""
        return self._fence is not None

    @contextmanager
    def alone(self) -> Iterator[StoreConnection]:
        """Let one thread work on the connection. What fails there fails the transaction, whoever catches it."""
        with self.lock:
            if self._over or self._shared.over:
                undone = self._dropped or self._shared.aborted
                raise self._shared.resource.used_late(self.token, lost=not undone)
            try:
                with self._shared.working() as connection:
                    yield connection
            except BaseException as error:
                self._error = self._error or error
                if not self._undoable:
                    self._shared.broken = self._shared.broken or error
                self._undoable = False
                raise

    def table(self, table: Table, cache_keys_max: int) -> TableTransaction:
        """Return what this transaction does to a map's table, which is made where there is none."""
        with self.alone() as connection:
            found = self._tables.get(table.name)
            if found is not None and found.table == table:
                return found
            if not self._shared.resource.declare(table) and table.name not in self._shared.made:
                connection.make_table(table, self.token.topology)
                self._made.add(table.name)
            cache = self._shared.cache(table, cache_keys_max)
            rows = self._shared.rows(table)
            made = TableTransaction(table, self.token, self._fence, self._shared.registry, cache, rows)
            made.open(connection)
            self._tables[table.name] = made
            return made

    @contextmanager
    def own_sql(self) -> Iterator[Any]:
        """Give the database's connection to the user's own SQL, which sees what the maps have stored."""
        with self.alone() as connection:
            if self._shared.held and not self._savepoint:  # what those before have done is not to be undone with it
                self._shared.flush(connection)
                connection.savepoint()
                self._savepoint = True
            self._flush(connection)
            self._shared.own_sql = True
            if not self.stored:
                self._undoable = self._savepoint
                with connection.own_sql() as native:
                    yield native
                self._undoable = False
                return
            connection.savepoint()
            try:
                with connection.own_sql() as native:
                    yield native
            except Exception as error:
                if not connection.violates_constraint(error):
                    raise
            connection.undo_to_savepoint()

    def _flush(self, connection: StoreConnection) -> None:
        for table in self._tables.values():
            table.flush(connection)

    # ------------------------------------------------------------------------------------ as one of several

    def hold(self) -> None:
        """End its use; what it has stored becomes durable with what those that follow store."""
        with self.lock:
            self._over = True
            if self._error is not None:
                raise self._error
            try:
                with self._shared.working() as connection:
                    for table in self._tables.values():
                        table.hold(connection)
            except BaseException as error:  # it reads: perhaps the server has undone all that those before did
                self._shared.broken = self._shared.broken or error
                raise
            self._shared.held.append(self.token)
            self._shared.made |= self._made

    def follow(self, token: CommitToken) -> StoreTransaction | None:
        """Return what the next transaction stores in the same one of the database; None: that has to begin anew."""
        assert token.txid == self.token.txid + 1, (token, self.token)
        self._shared.resource.raise_if_late()
        if self._fence is None:
            return StoreTransaction(self._shared, token, None)
        if token.txid > self._fence.txid:
            return None
        stored = stored_by(token, self._fence, {}, self._shared.resource.name)
        return StoreTransaction(self._shared, token, stored)

    def drop(self) -> None:
        """Undo what it has stored, and nothing of those before; where that cannot be, `prepare` fails."""
        with self.lock:
            self._over = self._dropped = True
            if not self._savepoint:
                return
            try:
                with self._shared.working() as connection:
                    connection.undo_to_savepoint()
            except Exception as error:
                self._shared.broken = self._shared.broken or error

    # ------------------------------------------------------------------------------------ as a participant

    def prepare(self) -> None:
        """Store what the maps hold back, and raise the fence; of all that were held up to this one."""
        shared = self._shared
        held = shared.held or [self.token]
        assert held[-1] == self.token, (held, self.token)
        with shared.working() as connection:
            error = shared.broken if shared.held else self._error
            if error is not None:
                raise error
            if shared.held:
                shared.flush(connection)
            else:
                for table in self._tables.values():
                    table.flush_last(connection)
            if self._fence is None:
                left = Fence.of(self.token, tuple(token.commit_id for token in held[:-1]))
            else:
                left = self._fence.raised_by(self.token)
            shared.raise_fence(connection, self.token, left)
            self._over = True  # what a thread of the user's stored from now on would be lost

    def commit(self) -> None:
        """Commit it."""
        self._shared.made |= self._made
        self._shared.commit()
        if not self._shared.held:
            for table in self._tables.values():
                table.remember()

    def abort(self) -> None:
        """Roll it back, with all that share it."""
        self._shared.abort()
