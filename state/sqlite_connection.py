"""SQLiteConnection: a store's work, said in SQLite's SQL."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import chain
from typing import Any

from stormline.state.columns import ColumnType
from stormline.state.errors import StoreUnavailable
from stormline.state.sql_connection import SQLConnection
from stormline.state.sql_text import Dialect, columns_of, statement
from stormline.state.sql_values import SQLValues
from stormline.state.table import Key, Row, RowColumns, Table

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
_AFFINITY_BY_PART = {
    "INT": "INTEGER",
    "CHAR": "TEXT",
    "CLOB": "TEXT",
    "TEXT": "TEXT",
    "BLOB": "BLOB",
    "REAL": "REAL",
    "FLOA": "REAL",
    "DOUB": "REAL",
}
_HELD = {
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
PARAMETERS_MAX = 100
"""Of one statement that writes rows, unless one row has more."""
_UNAVAILABLE = ("locked", "busy", "full", "disk i/o error")

_REMEDIES = {
    "readonly": "let this user write the file, and its folder too, or name another path",
    "unable to open": "let this user write the folder that it is in, or name another path",
    "malformed": "bring back a whole copy of the file",
    "not a database": "name another path, or bring back a whole copy of the file",
}


def _timestamp(value: str) -> datetime:
    found = datetime.fromisoformat(value)
    if found.utcoffset() is None:
        raise ValueError(f"{value!r} has no time zone")
    return found.astimezone(UTC)


def _boolean(value: int) -> bool:
    if value not in (0, 1):
        raise ValueError(f"{value!r} is neither 0 nor 1")
    return bool(value)


def connected(database: str, timeout_secs: float) -> sqlite3.Connection:
    """Return a connection that any thread may use, one at a time, and that writes to the disk what it commits."""
    db = sqlite3.connect(database, timeout=timeout_secs, isolation_level=None, check_same_thread=False)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        for text in SQLiteConnection.dialect.own_tables("TEXT", "TEXT", "INTEGER"):
            db.execute(text)
    except BaseException:
        db.close()
        raise
    return db


class SQLiteConnection(SQLConnection):
    """One connection to a SQLite database; see `StoreConnection`."""

    dialect = Dialect('"', "?", _TYPES, table_options=" WITHOUT ROWID")
    values = SQLValues(
        {
            ColumnType.TIMESTAMP: lambda value: value.astimezone(UTC).isoformat(" ", "microseconds"),
            ColumnType.DATE: date.isoformat,
            ColumnType.DECIMAL: str,
            ColumnType.BOOLEAN: int,
        },
        {
            ColumnType.TIMESTAMP: (str, _timestamp),
            ColumnType.DATE: (str, date.fromisoformat),
            ColumnType.DECIMAL: (str, Decimal),
            ColumnType.BOOLEAN: (int, _boolean),
        },
    )
    errors = (sqlite3.Error, OSError)

    def __init__(self, connect: Callable[[], sqlite3.Connection], store: str, path: str = "") -> None:
        super().__init__(store)
        self._connect = connect
        self._path = path
        self._open()

    def _open(self) -> None:
        with self._told("opening it"):
            self._db = self._connect()
            self._file = self._found_file()

    def _found_file(self) -> tuple[int, int] | None:
        """Return which file is at the path; None where there is none."""
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def _check_file(self) -> None:
        """Check that what is written is at the path: SQLite writes a file that was removed as if nothing were."""
        if self._path and self._found_file() != self._file:
            raise StoreUnavailable(
                f"{self._store} was removed, or another file was put in its place; the batch is replayed with what is "
                "there now"
            )

    @property
    def native(self) -> sqlite3.Connection:
        """What the user's own SQL is run on."""
        return self._db

    def _in_transaction(self) -> bool:
        try:
            return self._db.in_transaction
        except sqlite3.ProgrammingError:  # it was closed
            return False

    @contextmanager
    def own_sql(self) -> Iterator[sqlite3.Connection]:
        """Give the connection to the user's own SQL; what would end the transaction is refused."""
        refused = False

        def is_allowed(action: int, *_: Any) -> int:
            nonlocal refused
            refused = refused or action == sqlite3.SQLITE_TRANSACTION
            return sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_TRANSACTION else sqlite3.SQLITE_OK

        self._db.set_authorizer(is_allowed)  # statements that were prepared before are looked at again
        try:
            with super().own_sql() as db:
                yield db
        except sqlite3.DatabaseError as error:
            if refused and "not authorized" in str(error):
                raise self._ended_by_own_sql("tries to end") from error
            raise
        finally:
            with contextlib.suppress(sqlite3.ProgrammingError):
                self._db.set_authorizer(None)

    def _run(self, text: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._db.execute(text, parameters).fetchall()

    def _run_many(self, text: str, rows: Iterable[Sequence[Any]]) -> int:
        return self._db.executemany(text, rows).rowcount

    def _upsert(self, table: Table, columns: RowColumns, older: bool) -> int:
        """Insert or replace rows, some of them by each statement: that takes half the time of one by one."""
        names, key = columns_of(table), [column.name for column in table.key]
        width, count = len(columns), len(columns[0])
        step = max(1, PARAMETERS_MAX // width)
        together = count - count % step
        values = list(chain.from_iterable(zip(*columns, strict=True)))
        changed = 0
        for begin, end, rows in ((0, together, step), (together, count, 1)):
            if begin < end:
                text = self.dialect.upsert(table.name, names, key, older, rows)
                size = rows * width
                parts = (values[i : i + size] for i in range(begin * width, end * width, size))
                changed += self._run_many(text, parts)
        return changed

    def _columns(self, table: str) -> dict[str, tuple[str, int]]:
        found = self._run(f"PRAGMA table_info({self.dialect.name(table)})")
        return {str(row[1]): (str(row[2]), int(row[5])) for row in found}

    def _holds(self, declared: str, wanted: str) -> bool:
        parts = (affinity for part, affinity in _AFFINITY_BY_PART.items() if part in declared.upper())
        return not declared or next(parts, "NUMERIC") in _HELD[wanted]

    def translated(self, error: BaseException) -> BaseException:
        """Return what an error of SQLite's means."""
        if isinstance(error, sqlite3.OperationalError) and any(why in str(error).lower() for why in _UNAVAILABLE):
            return StoreUnavailable(f"{self._store} is not available: {error}; the batch is replayed until it is")
        return error

    def _refuses_row(self, error: BaseException) -> bool:
        return isinstance(error, (sqlite3.IntegrityError, OverflowError))

    def _remedy(self, error: BaseException) -> str:
        return next((remedy for why, remedy in _REMEDIES.items() if why in str(error).lower()), "")

    def violates_constraint(self, error: BaseException) -> bool:
        """Return whether the user's own SQL failed by a constraint of a table."""
        return isinstance(error, sqlite3.IntegrityError)

    def begin(self, reads: bool = False) -> None:
        """Begin a transaction, alone among those that write."""
        with self._told("beginning a transaction"):
            self._check_file()
            self._run("BEGIN" if reads else "BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Make all durable and visible."""
        with self._told("committing"):
            self._check_file()
            self._run("COMMIT")

    def rollback(self) -> None:
        """Undo all."""
        if self._db.in_transaction:
            self._run("ROLLBACK")

    def reset(self) -> None:
        """Let the session be as a new connection's: it is one."""
        self._db.close()
        self._open()

    def close(self) -> None:
        """Let go of it."""
        self._db.close()

    def read(self, table: Table, keys: Sequence[Key]) -> dict[Key, Row]:
        """Return the rows of those keys that have one: key by key, there is no round trip."""
        text = statement(
            "SELECT $columns FROM $table WHERE $key",
            columns=self._selected(table),
            table=self.dialect.name(table.name),
            key=self.dialect.equal(table.key),
        )
        row_of, execute = self.values.row_read(table), self._db.execute
        rows: dict[Key, Row] = {}
        key: Key = ()
        try:
            for key, parameters in zip(keys, self.values.written(table.key, keys), strict=True):
                found = execute(text, parameters).fetchone()
                if found is not None:
                    rows[key] = row_of(found)
        except (ValueError, TypeError, ArithmeticError) as error:
            raise self._corrupt(table, key, error) from error
        except sqlite3.Error as error:
            if "decode" in str(error).lower():
                raise self._corrupt(table, key, f"a text is not UTF-8: {error}") from error
            with self._told(f"reading table {table.name!r}"):
                raise
        return rows
