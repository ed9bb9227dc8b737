"""RedisConnection: a store's work, said in Redis's commands.

Nothing is changed before the commit: it is one MULTI, which fails where the fence, which is watched, has been changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    BusyLoadingError,
    ConnectionError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    TimeoutError,
    WatchError,
)
from redis.retry import Retry

from stormline.state.columns import ColumnType
from stormline.state.errors import CorruptRow, StoreFailed, StoreUnavailable, TableMismatch
from stormline.state.fence import Fence
from stormline.state.redis_packing import fields, pack_many_arguments, packed_rows
from stormline.state.table import REMOVED, Key, Kind, Row, RowColumns, Table
from stormline.state.table_claim import MAPS, check_claim
from stormline.topology.errors import CorruptData
from stormline.topology.serialization import PLAIN

FENCE = "stormline_fence"
"""What its keys begin with, one for each scope: the topology and the scope follow."""
SCOPES = "stormline_scopes"
"""What the keys of sets begin with, one for each topology: in which scopes it has stored."""
_AWAY = (ConnectionError, TimeoutError, BusyLoadingError, OutOfMemoryError, ReadOnlyError, WatchError)

_NOT_NOW = re.compile(r"\b(MISCONF|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|NOREPLICAS|BUSY) ")
"""How a server's answer begins that has no class of its own, and will be another one later."""
_GRANT = "grant the store's user the commands that it was denied, on the keys of the maps and on 'stormline_*'"


class RedisConnection:
    """One connection to a Redis server; see `StoreConnection`."""

    def __init__(self, url: str, password: str | None, timeout_secs: float, store: str) -> None:
        self._store = store
        given = {} if password is None else {"password": password}
        with self._told("connecting"):
            self._client: Any = redis.Redis.from_url(
                url,
                socket_timeout=timeout_secs,
                socket_connect_timeout=timeout_secs,
                retry=Retry(NoBackoff(), 0),  # what failed is replayed by the topology
                **given,
            )
            pack_many_arguments(self._client)
            try:
                self._client.ping()
            except BaseException:
                self._client.close()
                raise
        self._clear()

    def _clear(self) -> None:
        self._watching: Any = None
        self._topology = ""
        self._fence_to_set = ("", "", "")
        self._changes: dict[str, dict[bytes, bytes | None]] = {}
        self._own: Any = self._client.pipeline()
        self._own_kept = 0
        self._changes_kept: dict[str, dict[bytes, bytes | None]] = {}

    @contextmanager
    def _told(self, what: str) -> Iterator[None]:
        try:
            yield
        except (RedisError, OSError) as error:
            meant = self.translated(error)
            if meant is not error:
                raise meant from error
            remedy = f"; {_GRANT}" if isinstance(error, NoPermissionError) else ""
            raise StoreFailed(f"{self._store} fails in {what}: {type(error).__name__}: {error}{remedy}") from error

    def translated(self, error: BaseException) -> BaseException:
        """Return what an error of redis-py's means."""
        away = isinstance(error, (*_AWAY, OSError)) or (isinstance(error, RedisError) and _NOT_NOW.search(str(error)))
        if away and not isinstance(error, (AuthenticationError, AuthorizationError)):
            return StoreUnavailable(
                f"{self._store} is not available: {type(error).__name__}: {error}; the batch is replayed until it is"
            )
        return error

    @property
    def native(self) -> Any:
        """A pipeline: what is put into it is done with the commit."""
        return self._own

    @contextmanager
    def own_sql(self) -> Iterator[Any]:
        """Give the pipeline to the user, who must neither run nor empty it."""

        def refuse(*_: Any, **__: Any) -> None:
            raise StoreFailed(
                f"a pipeline of transaction() of {self._store} is run or emptied, by execute(), reset() or 'with "
                "pipeline:'; leave that out: the store runs its commands with the commit"
            )

        self._own.execute = self._own.reset = refuse
        try:
            yield self._own
        finally:
            del self._own.execute, self._own.reset

    def violates_constraint(self, error: BaseException) -> bool:
        """Return False: Redis has no constraints."""
        return False

    # ------------------------------------------------------------------------------------ transaction and fence

    def begin(self, reads: bool = False) -> None:
        """Begin with nothing changed."""
        self._clear()
        with self._told("beginning a transaction"):
            self._client.ping()

    @staticmethod
    def _fence_key(topology: str, scope: str) -> str:
        return f"{FENCE}:{topology}:{scope}"

    def lock_fence(self, topology: str, scope: str) -> Fence | None:
        """Return what is stored in a scope, and watch it."""
        self._topology = topology
        key = self._fence_key(topology, scope)
        with self._told("reading the fence"):
            self._watching = self._client.pipeline()
            self._watching.watch(key)
            found = self._watching.get(key)
        return None if found is None else self._fence(key, found)

    def _fence(self, key: str, found: bytes) -> Fence:
        try:
            epoch, txid, attempt, commit_id, *earlier = map(int, found.split())
        except ValueError:
            raise CorruptRow(
                f"key {key!r} of {self._store} holds {found!r}, expected four numbers, or more; bring back a whole "
                "copy of the database"
            ) from None
        return Fence(epoch, txid, attempt, commit_id, tuple(earlier))

    def fences(self, topology: str) -> dict[str, Fence]:
        """Return by scope all that is stored of a topology."""
        with self._told("reading the fence"):
            scopes = [scope.decode() for scope in self._client.smembers(_scopes(topology))]
            keys = [self._fence_key(topology, scope) for scope in scopes]
            found = self._client.mget(keys) if keys else []
        return {scope: self._fence(key, one) for scope, key, one in zip(scopes, keys, found, strict=True) if one}

    def raise_fence(self, topology: str, scope: str, fence: Fence) -> None:
        """Store what this transaction leaves behind."""
        *numbers, earlier = fence
        self._fence_to_set = topology, scope, " ".join(map(str, [*numbers, *earlier]))

    def savepoint(self) -> None:
        """Set the one savepoint, of the user's own commands and of what was written."""
        self._own_kept = len(self._own.command_stack)
        self._changes_kept = {name: dict(changes) for name, changes in self._changes.items()}

    def undo_to_savepoint(self) -> None:
        """Forget the user's own commands since the savepoint, and what was written since."""
        del self._own.command_stack[self._own_kept :]
        self._changes = self._changes_kept

    def commit(self) -> None:
        """Make all durable and visible, unless somebody has changed the fence."""
        with self._told("committing"):
            pipe = self._watching if self._watching is not None else self._client.pipeline()
            pipe.multi()
            topology, scope, fence = self._fence_to_set
            pipe.sadd(_scopes(topology), scope)  # before own commands, which may select another database
            pipe.set(self._fence_key(topology, scope), fence)
            for name, changes in self._changes.items():
                written = {field: value for field, value in changes.items() if value is not None}
                deleted = [field for field, value in changes.items() if value is None]
                if written:
                    pipe.hset(name, mapping=written)
                if deleted:
                    pipe.hdel(name, *deleted)
            for arguments, options in self._own.command_stack:
                pipe.execute_command(*arguments, **options)
            pipe.execute()
            self._clear()

    def rollback(self) -> None:
        """Forget what was to be changed, and the watch by closing what watches: UNWATCH would wait for an answer."""
        pipe, self._watching = self._watching, None
        if pipe is not None:
            if pipe.connection is not None:
                pipe.connection.disconnect()
            pipe.watching = False  # or it would connect again, to say UNWATCH, whenever it is collected
            pipe.reset()
        self._clear()

    def reset(self) -> None:
        """Let the session be as a new connection's: it is one."""
        self._client.connection_pool.disconnect()

    def close(self) -> None:
        """Let go of it."""
        self._client.close()

    # ------------------------------------------------------------------------------------ rows

    def make_table(self, table: Table, topology: str) -> None:
        """Check that the hash is a map's, this one's and this topology's, or there is none."""
        with self._told(f"making table {table.name!r}"):
            kind = self._client.type(table.name)
            claim = self._client.hget(MAPS, table.name)
        if kind not in (b"none", b"hash"):
            raise TableMismatch(
                f"key {table.name!r} of {self._store} is a {kind.decode()}, expected a hash, or nothing; name "
                "another table"
            )
        if claim is None:
            self._change(MAPS)[table.name.encode()] = f"{topology} {table.described()}".encode()
            return
        owner, _, declared = claim.decode().partition(" ")
        check_claim(self._store, table, topology, owner, declared)

    def _change(self, name: str) -> dict[bytes, bytes | None]:
        return self._changes.setdefault(name, {})

    def read(self, table: Table, keys: Sequence[Key]) -> dict[Key, Row]:
        """Return the rows of those keys that have one."""
        asked = fields(table, keys)
        with self._told(f"reading table {table.name!r}"):
            found = self._client.hmget(table.name, asked)
        changed = self._changes.get(table.name, {})
        rows = {}
        for key, field, one in zip(keys, asked, found, strict=True):
            held = changed.get(field, one)
            if held is not None:
                rows[key] = self._row(table, key, held)
        return rows

    def read_all(self, table: Table) -> dict[Key, Row]:
        """Return all rows."""
        with self._told(f"reading table {table.name!r}"):
            found = self._client.hgetall(table.name)
        rows = {}
        for field, held in found.items():
            key = self._key(table, field)
            rows[key] = self._row(table, key, held)
        return rows

    def write(self, table: Table, columns: RowColumns) -> None:
        """Insert or replace rows."""
        changes = self._change(table.name)
        keys = list(zip(*columns[: len(table.key)], strict=True))
        changes.update(zip(fields(table, keys), packed_rows(table, columns), strict=True))

    def write_unread(self, table: Table, columns: RowColumns) -> bool:
        """Insert or replace rows, where no scope of the topology, whose table it is, has come as far as this one."""
        if table.kind is not Kind.NON_TRANSACTIONAL:
            txid_max = max((fence.txid for fence in self.fences(self._topology).values()), default=0)
            if txid_max >= min(columns[-1]):
                return False
        self.write(table, columns)
        return True

    def delete(self, table: Table, keys: Sequence[Key]) -> None:
        """Delete rows."""
        self._change(table.name).update(dict.fromkeys(fields(table, keys)))

    def keep_removed(self, table: Table, rows: Sequence[tuple[Key, Row]], txid: int) -> None:
        """Keep rows that `txid` deletes, and forget those that earlier ones have deleted."""
        changes = self._change(table.name + REMOVED)
        for field, (removed_by, _) in self._removed(table).items():
            if removed_by < txid:
                changes[field] = None
        for field, (_, row) in zip(fields(table, [key for key, _ in rows]), rows, strict=True):
            changes[field] = PLAIN.pack([txid, [list(row.values), row.txid, None, None]])

    def _removed(self, table: Table) -> dict[bytes, tuple[int, Any]]:
        with self._told(f"reading table {table.name!r}"):
            found = self._client.hgetall(table.name + REMOVED)
        found.update(self._changes.get(table.name + REMOVED, {}))
        return {field: tuple(PLAIN.unpack(held)) for field, held in found.items() if held is not None}

    def undo(self, table: Table, txid: int, keys: Sequence[Key] | None) -> None:
        """Let rows be what they were before `txid`."""
        among = None if keys is None else set(fields(table, keys))
        rows = self.read_all(table) if keys is None else self.read(table, keys)
        changes, removed = self._change(table.name), self._change(table.name + REMOVED)
        for field, row in zip(fields(table, list(rows)), rows.values(), strict=True):
            if row.txid == txid:
                before = None if row.prev is None else PLAIN.pack([list(row.prev), row.prev_txid, None, None])
                changes[field] = before if row.prev_txid is not None else None
        for field, (removed_by, held) in self._removed(table).items():
            if removed_by == txid and (among is None or field in among):
                changes[field] = PLAIN.pack(held)
                removed[field] = None

    # ------------------------------------------------------------------------------------ bytes

    def _row(self, table: Table, key: Key, held: bytes) -> Row:
        try:
            values, txid, prev, prev_txid = PLAIN.unpack(held)
            row = Row(tuple(values), txid, None if prev is None else tuple(prev), prev_txid)
            problems = [
                f"column {column.name!r} {problem}"
                for column, value in zip(table.value, row.values, strict=True)
                if value is not None and (problem := _problem(column.type, column.problem(value), value))
            ]
            if problems or (table.kind is not Kind.NON_TRANSACTIONAL and type(txid) is not int):
                raise ValueError(problems[0] if problems else "no number of a transaction")
        except (CorruptData, ValueError, TypeError) as error:
            raise CorruptRow(
                f"table {table.name!r} of {self._store} holds for key {key} what its map cannot have written: {error}; "
                "correct the row, or remove it"
            ) from error
        return row

    def _key(self, table: Table, field: bytes) -> Key:
        try:
            if len(table.key) == 1 and table.key[0].type is ColumnType.TEXT:
                return (field.decode(),)
            return tuple(PLAIN.unpack(field))
        except (CorruptData, ValueError, TypeError) as error:
            raise CorruptRow(
                f"table {table.name!r} of {self._store} holds a field {field!r} that its map cannot have written: "
                f"{error}"
            ) from error


def _scopes(topology: str) -> str:
    return f"{SCOPES}:{topology}"


def _problem(kind: ColumnType, problem: str | None, value: Any) -> str | None:
    if kind is ColumnType.PACKED:
        return None if type(value) is bytes else f"is a {type(value).__name__}, expected msgpack"
    return problem
