"""SQLiteConnection: a store's work, said in SQLite's SQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

from stormline.state.columns import PYTHON, Column, ColumnType
from stormline.state.errors import CorruptRow, StoreFailed, StoreUnavailable, TableMismatch
from stormline.state.fence import Fence
from stormline.state.sql_text import FENCE, MAPS, PREV_TXID, REMOVED_BY, Dialect, columns_of, removed_table, statement
from stormline.state.table import PREV, TXID, Key, Kind, Row, Table
from stormline.topology.errors import shown

_TYPES = {
    ColumnType.INTEGER: "INTEGER",
    ColumnType.REAL: "REAL",
    ColumnType.TEXT: "TEXT",
    ColumnType.BYTES: "BLOB",
    ColumnType.BOOLEAN: "BOOLEAN",
    ColumnType.TIMESTAMP: "TIMESTAMP",
    ColumnType.DATE: "DATE",
    ColumnType.DECIMAL: "DECIMAL_TEXT",  # the affinity of TEXT: no digit is lost
    ColumnType.PACKED: "MSGPACK_BLOB",
}
_AFFINITIES = {"INT": "INTEGER", "CHAR": "TEXT", "CLOB": "TEXT", "TEXT": "TEXT", "BLOB": "BLOB"} | {
    "REAL": "REAL",
    "FLOA": "REAL",
    "DOUB": "REAL",
}
_TAKEN = {
    "INTEGER": ("INTEGER", "NUMERIC"),
    "REAL": ("REAL",),
    "TEXT": ("TEXT",),
    "BLOB": ("BLOB",),
    "BOOLEAN": ("INTEGER", "NUMERIC"),
    "TIMESTAMP": ("TEXT", "NUMERIC"),
    "DATE": ("TEXT", "NUMERIC"),
    "DECIMAL_TEXT": ("TEXT",),
    "MSGPACK_BLOB": ("BLOB",),
}
"""The affinities that hold the values of our types as they are, by type."""
_UNAVAILABLE = ("locked", "busy", "full", "disk i/o error")
_SQL = Dialect('"', "?")


def connected(database: str, timeout_secs: float, uri: bool) -> sqlite3.Connection:
    """Return a connection that any thread may use, one at a time, and that writes to the disk what it commits."""
    db = sqlite3.connect(database, timeout_secs, isolation_level=None, check_same_thread=False, uri=uri)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute(
            statement(
                "CREATE TABLE IF NOT EXISTS $fence (topology TEXT, scope TEXT, epoch INTEGER NOT NULL, "
                "txid INTEGER NOT NULL, attempt INTEGER NOT NULL, commit_id INTEGER NOT NULL, "
                "PRIMARY KEY (topology, scope)) WITHOUT ROWID",
                fence=FENCE,
            )
        )
        db.execute(
            statement(
                "CREATE TABLE IF NOT EXISTS $maps (name TEXT PRIMARY KEY, topology TEXT NOT NULL, "
                "declared TEXT NOT NULL)",
                maps=MAPS,
            )
        )
    except BaseException:
        db.close()
        raise
    return db


class SQLiteConnection:
    """One connection to a SQLite database; see `StoreConnection`."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], store: str) -> None:
        self._store = store
        with self._told("opening it"):
            self._db = connect()

    @property
    def native(self) -> sqlite3.Connection:
        """What the user's own SQL is run on."""
        return self._db

    @contextmanager
    def _told(self, what: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            meant = self.translated(error)
            if meant is not error:
                raise meant from error
            raise StoreFailed(f"{self._store} fails in {what}: {type(error).__name__}: {error}") from error

    def translated(self, error: BaseException) -> BaseException:
        """Return what an error of SQLite's means."""
        if isinstance(error, sqlite3.OperationalError) and any(why in str(error).lower() for why in _UNAVAILABLE):
            return StoreUnavailable(f"{self._store} is not available: {error}; the batch is replayed until it is")
        return error

    def violates_constraint(self, error: BaseException) -> bool:
        """Tell whether the user's own SQL failed by a constraint of a table."""
        return isinstance(error, sqlite3.IntegrityError)

    # ------------------------------------------------------------------------------------ transaction and fence

    def begin(self, reads: bool = False) -> None:
        """Begin a transaction, alone among those that write."""
        with self._told("beginning a transaction"):
            self._db.execute("BEGIN" if reads else "BEGIN IMMEDIATE")

    def lock_fence(self, topology: str, scope: str) -> Fence | None:
        """Return what is stored in a scope."""
        text = statement(
            "SELECT epoch, txid, attempt, commit_id FROM $fence WHERE topology = ? AND scope = ?", fence=FENCE
        )
        row = self._execute(text, [topology, scope], "reading the fence").fetchone()
        if row is None:
            return None
        if not all(type(value) is int and value >= 0 for value in row):
            raise CorruptRow(
                f"table {FENCE!r} of {self._store} holds {row} for topology {topology!r}, scope {scope!r}, expected "
                "four numbers; bring back a whole copy of the database"
            )
        return Fence(*row)

    def txid_max(self, topology: str) -> int:
        """Return the last transaction of any scope of a topology."""
        text = statement("SELECT max(txid) FROM $fence WHERE topology = ?", fence=FENCE)
        found = self._execute(text, [topology], "reading the fence").fetchone()[0]
        return int(found or 0)

    def raise_fence(self, topology: str, scope: str, fence: Fence) -> None:
        """Store what this transaction leaves behind."""
        text = statement("INSERT OR REPLACE INTO $fence VALUES (?, ?, ?, ?, ?, ?)", fence=FENCE)
        self._execute(text, [topology, scope, *fence], "raising the fence")

    def savepoint(self) -> None:
        """Set the one savepoint."""
        self._execute("SAVEPOINT stormline_own", [], "setting a savepoint")

    def undo_to_savepoint(self) -> None:
        """Undo all since the savepoint."""
        self._execute("ROLLBACK TO stormline_own", [], "undoing own SQL")
        self._execute("RELEASE stormline_own", [], "undoing own SQL")

    def commit(self) -> None:
        """Make all durable and visible."""
        self._execute("COMMIT", [], "committing")

    def rollback(self) -> None:
        """Undo all."""
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def close(self) -> None:
        """Let go of it."""
        self._db.close()

    def _execute(self, text: str, parameters: Sequence[Any], what: str) -> sqlite3.Cursor:
        with self._told(what):
            return self._db.execute(text, parameters)

    # ------------------------------------------------------------------------------------ tables

    def make_table(self, table: Table, topology: str) -> None:
        """Make a map's table where there is none, and check the one that is there."""
        self._claim(table, topology)
        where = f"making table {table.name!r}"
        found = self._execute(f"PRAGMA table_info({_SQL.name(table.name)})", [], where).fetchall()
        if found:
            self._check(table, {str(row[1]): (str(row[2]), int(row[5])) for row in found})
        else:
            self._create(table, table.name, columns_of(table))
        if table.kind is Kind.OPAQUE:
            self._create(table, removed_table(table), _removed_columns(table))

    def _create(self, table: Table, name: str, columns: Sequence[str]) -> None:
        types = _types(table)
        text = statement(
            "CREATE TABLE IF NOT EXISTS $table ($columns, PRIMARY KEY ($key)) WITHOUT ROWID",
            table=_SQL.name(name),
            columns=", ".join(f"{_SQL.name(column)} {types[column]}" for column in columns),
            key=_SQL.key(table.key),
        )
        self._execute(text, [], f"making table {name!r}")

    def _claim(self, table: Table, topology: str) -> None:
        """Let a table be one topology's, and one declaration's."""
        text = statement("SELECT topology, declared FROM $maps WHERE name = ?", maps=MAPS)
        found = self._execute(text, [table.name], "reading its tables").fetchone()
        if found is None:
            text = statement("INSERT INTO $maps VALUES (?, ?, ?)", maps=MAPS)
            self._execute(text, [table.name, topology, table.described()], "noting a table")
        else:
            check_claim(self._store, table, topology, str(found[0]), str(found[1]))

    def _check(self, table: Table, found: dict[str, tuple[str, int]]) -> None:
        """Check the columns of a table that is there: names, the affinity of their types, and the primary key."""
        types = _types(table)
        for column in columns_of(table):
            if column not in found:
                raise TableMismatch(
                    f"table {table.name!r} of {self._store} has no column {column!r}, which the map needs: "
                    f"{table.described()}; it has {sorted(found)}: add the column ({types[column]}), or "
                    "name another table"
                )
            declared = found[column][0]
            if declared and _affinity(declared) not in _TAKEN.get(types[column].partition(" ")[0], ()):
                raise TableMismatch(
                    f"column {column!r} of table {table.name!r} of {self._store} is of type {declared}, expected "
                    f"{types[column]}; declare the map as the table is, or name another table"
                )
        key = [name for name, (_, position) in sorted(found.items(), key=lambda item: item[1][1]) if position]
        if sorted(key) != sorted(column.name for column in table.key):
            raise TableMismatch(
                f"table {table.name!r} of {self._store} has the primary key {key}, expected "
                f"{[column.name for column in table.key]}: each key of the map is one row; name another table"
            )

    # ------------------------------------------------------------------------------------ rows

    def read(self, table: Table, keys: Sequence[Key]) -> dict[Key, Row]:
        """Return the rows of those keys that have one."""
        values = columns_of(table)[len(table.key) :]
        text = statement(
            "SELECT $values FROM $table WHERE $key",
            values=_SQL.names(values),
            table=_SQL.name(table.name),
            key=_SQL.equal(table.key),
        )
        made = _rows_of(table)
        written = _written(table.key, keys)
        rows: dict[Key, Row] = {}
        execute = self._db.execute
        with self._reading(table, at := [()]):
            for key, parameters in zip(keys, written, strict=True):
                at[0] = key
                found = execute(text, parameters).fetchone()
                if found is not None:
                    rows[key] = made(found)
        return rows

    def read_all(self, table: Table) -> dict[Key, Row]:
        """Return all rows; none where there is no such table."""
        where = f"reading table {table.name!r}"
        if not self._execute(f"PRAGMA table_info({_SQL.name(table.name)})", [], where).fetchall():
            return {}
        columns = _SQL.names(columns_of(table))
        text = statement("SELECT $columns FROM $table", columns=columns, table=_SQL.name(table.name))
        made, reads = _rows_of(table), [_READS.get(column.type) for column in table.key]
        width = len(table.key)
        rows: dict[Key, Row] = {}
        with self._reading(table, at := [()]):
            for found in self._db.execute(text):
                at[0] = key = found[:width]
                if any(reads):
                    key = tuple(read[1](part) if read else part for part, read in zip(key, reads, strict=True))
                rows[key] = made(found[width:])
        return rows

    @contextmanager
    def _reading(self, table: Table, at: list[Key]) -> Iterator[None]:
        """Let what is wrong with the row that is looked `at` be told with its key."""
        try:
            yield
        except (ValueError, TypeError, ArithmeticError) as error:
            raise CorruptRow(
                f"table {table.name!r} of {self._store} holds for key {at[0]} what its map cannot have written: "
                f"{error}; correct the row, or remove it"
            ) from error
        except sqlite3.OperationalError as error:
            if "decode" not in str(error).lower():
                with self._told(f"reading table {table.name!r}"):
                    raise
            raise CorruptRow(
                f"table {table.name!r} of {self._store} holds for key {at[0]} a text that is not UTF-8: {error}; "
                "correct the row, or remove it"
            ) from error
        except sqlite3.Error:
            with self._told(f"reading table {table.name!r}"):
                raise

    def write(self, table: Table, rows: Sequence[tuple[Key, Row]]) -> None:
        """Insert or replace rows."""
        columns = columns_of(table)
        rest = columns[len(table.key) :]
        text = statement(
            "INSERT INTO $table ($columns) VALUES ($parameters) ON CONFLICT ($key) DO UPDATE SET $sets",
            table=_SQL.name(table.name),
            columns=_SQL.names(columns),
            parameters=_SQL.parameters(len(columns)),
            key=_SQL.key(table.key),
            sets=", ".join(f"{_SQL.name(name)} = excluded.{_SQL.name(name)}" for name in rest),
        )
        with self._told(f"writing table {table.name!r}"):
            self._db.executemany(text, _full_rows(table, rows))

    def delete(self, table: Table, keys: Sequence[Key]) -> None:
        """Delete rows."""
        self._delete(table, table.name, keys)

    def _delete(self, table: Table, name: str, keys: Sequence[Key]) -> None:
        text = statement("DELETE FROM $table WHERE $key", table=_SQL.name(name), key=_SQL.equal(table.key))
        with self._told(f"removing from table {name!r}"):
            self._db.executemany(text, _written(table.key, keys))

    def keep_removed(self, table: Table, rows: Sequence[tuple[Key, Row]], txid: int) -> None:
        """Keep rows that `txid` deletes, and forget those that earlier ones have deleted."""
        name = removed_table(table)
        forget = statement("DELETE FROM $table WHERE $removed_by < ?", table=_SQL.name(name), removed_by=REMOVED_BY)
        self._execute(forget, [txid], f"writing table {name!r}")
        columns = _removed_columns(table)
        text = statement(
            "INSERT OR REPLACE INTO $table ($columns) VALUES ($parameters)",
            table=_SQL.name(name),
            columns=_SQL.names(columns),
            parameters=_SQL.parameters(len(columns)),
        )
        written = _written((*table.key, *table.value), [(*key, *row.values) for key, row in rows])
        with self._told(f"writing table {name!r}"):
            self._db.executemany(text, [(*one, row.txid, txid) for one, (_, row) in zip(written, rows, strict=True)])

    def undo(self, table: Table, txid: int, keys: Sequence[Key] | None) -> None:
        """Let rows be what they were before `txid`."""
        values = [column.name for column in table.value]
        parts = {
            "table": _SQL.name(table.name),
            "removed_by": REMOVED_BY,
            "removed": _SQL.name(removed_table(table)),
            "columns": _SQL.names([column.name for column in (*table.key, *table.value)]),
            "prev_txid": _SQL.name(PREV_TXID),
            "txid": _SQL.name(TXID),
            "sets": ", ".join(f"{_SQL.name(name)} = {_SQL.name(PREV + name)}" for name in values),
            "key": "" if keys is None else f" AND {_SQL.equal(table.key)}",
        }
        undo = [
            statement("DELETE FROM $table WHERE $txid = ? AND $prev_txid IS NULL$key", **parts),
            statement("UPDATE $table SET $sets, $txid = $prev_txid, $prev_txid = NULL WHERE $txid = ?$key", **parts),
            statement(
                "INSERT OR REPLACE INTO $table ($columns, $txid) SELECT $columns, $txid FROM $removed "
                "WHERE $removed_by = ?$key",
                **parts,
            ),
            statement("DELETE FROM $removed WHERE $removed_by = ?$key", **parts),
        ]
        each = [()] if keys is None else _written(table.key, keys)
        with self._told(f"undoing transaction {txid} in table {table.name!r}"):
            for text in undo:
                self._db.executemany(text, [(txid, *key) for key in each])


def check_claim(store: str, table: Table, topology: str, found_topology: str, found: str) -> None:
    """Check that a table which is in use is this topology's, and declared as it is; raise `TableMismatch`."""
    if found_topology != topology:
        raise TableMismatch(
            f"table {table.name!r} of {store} belongs to topology {found_topology!r}, and this is {topology!r}: their "
            f"transactions have nothing to do with each other; name another table, or remove that row from {MAPS!r}"
        )
    if found != table.described():
        raise TableMismatch(
            f"table {table.name!r} of {store} is that of another map: {found}, and this is {table.described()}; "
            "declare the map as it was, name another table, or change the table yourself and remove its row from "
            f"{MAPS!r}"
        )


def _removed_columns(table: Table) -> list[str]:
    return [*(column.name for column in (*table.key, *table.value)), TXID, REMOVED_BY]


def _types(table: Table) -> dict[str, str]:
    types = {column.name: _TYPES[column.type] + " NOT NULL" for column in table.key}
    types |= {column.name: _TYPES[column.type] for column in table.value}
    types |= {PREV + column.name: _TYPES[column.type] for column in table.value}
    return types | {TXID: "INTEGER NOT NULL", PREV_TXID: "INTEGER", REMOVED_BY: "INTEGER NOT NULL"}


def _affinity(declared: str) -> str:
    """Return the affinity of a declared type, by SQLite's rules."""
    return next((affinity for part, affinity in _AFFINITIES.items() if part in declared.upper()), "NUMERIC")


# ---------------------------------------------------------------------------------------- values

_WRITES: dict[ColumnType, Callable[[Any], Any]] = {
    ColumnType.TIMESTAMP: lambda value: value.astimezone(timezone.utc).isoformat(" ", "microseconds"),
    ColumnType.DATE: date.isoformat,
    ColumnType.DECIMAL: str,
    ColumnType.BOOLEAN: int,
}


def _timestamp(value: str) -> datetime:
    found = datetime.fromisoformat(value)
    if found.utcoffset() is None:
        raise ValueError(f"{value!r} has no time zone")
    return found.astimezone(timezone.utc)


def _boolean(value: int) -> bool:
    if value not in (0, 1):
        raise ValueError(f"{value!r} is neither 0 nor 1")
    return bool(value)


_READS: dict[ColumnType, tuple[type, Callable[[Any], Any]]] = {
    ColumnType.TIMESTAMP: (str, _timestamp),
    ColumnType.DATE: (str, date.fromisoformat),
    ColumnType.DECIMAL: (str, Decimal),
    ColumnType.BOOLEAN: (int, _boolean),
}


def _written(columns: Sequence[Column], rows: Sequence[tuple[Any, ...]]) -> Sequence[tuple[Any, ...]]:
    """Return rows as SQLite holds them."""
    writes = [_WRITES.get(column.type) for column in columns]
    if not any(writes):
        return rows
    return [
        tuple(
            value if write is None or value is None else write(value) for write, value in zip(writes, row, strict=True)
        )
        for row in rows
    ]


def _full_rows(table: Table, rows: Sequence[tuple[Key, Row]]) -> Sequence[tuple[Any, ...]]:
    """Return the values of all columns, in their order."""
    if table.kind is Kind.NON_TRANSACTIONAL:
        return _written((*table.key, *table.value), [(*key, *row.values) for key, row in rows])
    txid = Column(TXID, ColumnType.INTEGER)
    if table.kind is Kind.TRANSACTIONAL:
        return _written((*table.key, *table.value, txid), [(*key, *row.values, row.txid) for key, row in rows])
    none = (None,) * len(table.value)
    columns = (*table.key, *table.value, txid, *table.value, txid)
    return _written(columns, [(*key, *row.values, row.txid, *(row.prev or none), row.prev_txid) for key, row in rows])


def _rows_of(table: Table) -> Callable[[tuple[Any, ...]], Row]:
    """Return what makes rows of the columns after the key; it raises ValueError where they are of other types."""
    width = len(table.value)
    opaque = table.kind is Kind.OPAQUE
    reads = [_READS.get(column.type) for column in table.value]
    held = [
        bytes if column.type is ColumnType.PACKED else (read[0] if read else PYTHON[column.type])
        for column, read in zip(table.value, reads, strict=True)
    ]
    plain = not any(reads)

    def values_of(found: tuple[Any, ...]) -> tuple[Any, ...]:
        for column, value, kind in zip(table.value, found, held, strict=True):
            if type(value) is not kind and value is not None:
                raise ValueError(f"column {column.name!r} is {shown(value)}, expected {column.type.value}")
        if plain:
            return found
        return tuple(
            value if value is None or read is None else read[1](value) for value, read in zip(found, reads, strict=True)
        )

    def row_of(found: tuple[Any, ...]) -> Row:
        values = values_of(found[:width])
        if width == 1 and values[0] is None:
            raise ValueError(f"column {table.value[0].name!r} is empty")
        if len(found) == width:
            return Row(values)
        txid = found[width]
        if type(txid) is not int:
            raise ValueError(f"column {TXID!r} is {shown(txid)}, expected the number of a transaction")
        if not opaque or found[-1] is None:
            return Row(values, txid)
        if type(found[-1]) is not int:
            raise ValueError(f"column {PREV_TXID!r} is {shown(found[-1])}, expected the number of a transaction")
        return Row(values, txid, values_of(found[width + 1 : -1]), found[-1])

    return row_of
