"""PostgreSQLConnection: a store's work, said in PostgreSQL's SQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from stormline.state.columns import ColumnType, in_utc
from stormline.state.errors import StoreFailed, StoreUnavailable
from stormline.state.fence import Fence
from stormline.state.postgresql_bulk import ROWS_MIN, BulkWrite
from stormline.state.postgresql_silence import GRACE_SECS, BoundedConnection
from stormline.state.sql_connection import GONE, GRANT, IDLE_TIMES, SQLConnection
from stormline.state.sql_text import FENCE, Dialect, columns_of, statement
from stormline.state.sql_values import SQLValues
from stormline.state.table import Key, Row, RowColumns, Table

_LOCK = 7_766_271_019  # any number: of those who make Stormline's own tables
_TYPES = {
    ColumnType.INTEGER: "bigint",
    ColumnType.REAL: "double precision",
    ColumnType.TEXT: "text",
    ColumnType.BYTES: "bytea",
    ColumnType.BOOLEAN: "boolean",
    ColumnType.TIMESTAMP: "timestamp with time zone",
    ColumnType.DATE: "date",
    ColumnType.DECIMAL: "numeric",
    ColumnType.PACKED: "bytea",
}
_HELD = {"bigint": ("bigint", "integer", "smallint"), "text": ("text", "character varying")}
"""What else holds the values of our types as they are, as long as they fit."""
_FATAL_AT_CONNECT = ("authentication failed", "does not exist", "no pg_hba.conf entry", "no password supplied")
_RESET = (
    b"CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ALL; UNLISTEN *; SELECT pg_advisory_unlock_all(); "
    b"DISCARD TEMP; DISCARD SEQUENCES"
)
"""As DISCARD ALL, which would forget the statements as well that psycopg has prepared and knows of."""
_AWAY = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    psycopg.errors.ReadOnlySqlTransaction,  # a standby, until it is promoted
    psycopg.errors.IdleInTransactionSessionTimeout,
)


class PostgreSQLConnection(SQLConnection):
    """One connection to a PostgreSQL server; see `StoreConnection`."""

    # In the order of bytes, as Python sorts: keys that come sorted are a third faster. With half of each page left
    # empty a row's next version finds place beside it, which takes half the time, and no index has to know of it.
    dialect = Dialect(
        '"', "%s", _TYPES, {ColumnType.TEXT: 'text COLLATE "C"'}, " WITH (fillfactor = 50)", for_update=" FOR UPDATE"
    )
    values = SQLValues({}, {ColumnType.TIMESTAMP: (datetime, in_utc)})
    errors = (psycopg.Error, OSError)

    def __init__(self, dsn: str, password: str | None, timeout_secs: float, store: str, reads: bool) -> None:
        super().__init__(store)
        with self._told("connecting"):
            self._db = self._connected(dsn, password, timeout_secs)
        if reads:
            return
        try:
            with self._told("making its own tables"):
                self._make_own_tables()
        except BaseException:
            self._db.close()
            raise

    def _connected(self, dsn: str, password: str | None, timeout_secs: float) -> BoundedConnection:
        limit_ms = max(1, int(timeout_secs * 1000))
        given: dict[str, Any] = {} if password is None else {"password": password}
        try:
            db = BoundedConnection.connect(
                dsn,
                autocommit=True,  # transactions are begun and ended in so many words
                connect_timeout=max(2, int(timeout_secs)),
                tcp_user_timeout=limit_ms,
                keepalives_idle=max(1, int(timeout_secs)),
                client_encoding="UTF8",
                fallback_application_name="stormline",
                **given,
            )
        except psycopg.OperationalError as error:
            if any(why in str(error) for why in _FATAL_AT_CONNECT):
                raise StoreFailed(f"{self._store} refuses the connection: {str(error).strip()}") from None
            raise
        except psycopg.ProgrammingError:  # what libpq cannot read it quotes: it may be a part of the password
            raise StoreFailed(
                f"the DSN of {self._store} is none that libpq can read; it is not shown here: correct it, and quote "
                "what has spaces in it, as in password='a b'"
            ) from None
        db.silence_secs = timeout_secs + GRACE_SECS
        self._settings = {
            "statement_timeout": limit_ms,
            "lock_timeout": limit_ms,
            "idle_in_transaction_session_timeout": IDLE_TIMES * limit_ms,
        }
        for name, found in db.execute(
            "SELECT name, setting FROM pg_settings WHERE name = ANY(%s) AND setting <> '0'", [[*self._settings]]
        ).fetchall():  # somebody wants it so, of this role or this database
            self._settings[name] = int(found)
        db.silence_secs = self._settings["statement_timeout"] / 1000 + GRACE_SECS
        self._set(db)
        return db

    def _set(self, db: BoundedConnection) -> None:
        settings = "; ".join(f"SET {name} = {number}" for name, number in self._settings.items())
        db.execute(f"{settings}; SET TimeZone = 'UTC'".encode(), prepare=False)

    def _make_own_tables(self) -> None:
        if self._run("SELECT to_regclass(%s)", [FENCE]) != [(None,)]:
            return
        with self._db.transaction():
            self._run("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
            for text in self.dialect.own_tables("text", "text", "bigint"):
                self._run(text)

    @property
    def native(self) -> psycopg.Connection[Any]:
        """What the user's own SQL is run on."""
        return self._db

    def _in_transaction(self) -> bool:
        return self._db.pgconn.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR)

    @contextmanager
    def own_sql(self) -> Iterator[psycopg.Connection[Any]]:
        """Give the connection to the user's own SQL; what would end the transaction is refused."""
        try:
            with super().own_sql() as db, db.transaction():  # psycopg refuses commit() and rollback() in it
                yield db
        except psycopg.Error as error:
            if not self._in_transaction() and not isinstance(error, _AWAY):
                raise self._ended_by_own_sql("has ended") from error
            if isinstance(error, psycopg.ProgrammingError) and "forbidden within" in str(error):
                raise self._ended_by_own_sql("tries to end") from error
            raise

    def _run(self, text: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        cursor = self._db.execute(text.encode(), parameters or None)
        return cursor.fetchall() if cursor.description is not None else []

    def _run_many(self, text: str, rows: Iterable[Sequence[Any]]) -> int:
        with self._db.cursor() as cursor:
            cursor.executemany(text.encode(), rows)
            return cursor.rowcount

    def _columns(self, table: str) -> dict[str, tuple[str, int]]:
        found = self._run(
            "SELECT a.attname, format_type(a.atttypid, a.atttypmod), "
            "coalesce(array_position(string_to_array(i.indkey::text, ' ')::int2[], a.attnum), 0) "
            "FROM pg_attribute a LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary "
            "WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped",
            [self.dialect.name(table)],
        )
        return {str(name): (str(kind), int(place)) for name, kind, place in found}

    def _holds(self, declared: str, wanted: str) -> bool:
        wanted = wanted.partition(" COLLATE")[0]
        return declared.partition("(")[0] in _HELD.get(wanted, ()) or declared == wanted

    def translated(self, error: BaseException) -> BaseException:
        """Return what an error of psycopg's means."""
        if isinstance(error, _AWAY):
            why = str(error).strip().replace("\n", " ")
            return StoreUnavailable(
                f"{self._store} is not available: {type(error).__name__}: {why}; the batch is replayed until it is"
            )
        return error

    def _refuses_row(self, error: BaseException) -> bool:
        return isinstance(error, (psycopg.DataError, psycopg.IntegrityError))

    def _remedy(self, error: BaseException) -> str:
        if isinstance(error, psycopg.errors.InsufficientPrivilege):
            return GRANT
        return GONE if isinstance(error, psycopg.errors.UndefinedTable) else ""

    def violates_constraint(self, error: BaseException) -> bool:
        """Return whether the user's own SQL failed by a constraint of a table."""
        return isinstance(error, psycopg.errors.IntegrityError)

    # ------------------------------------------------------------------------------------ transaction and fence

    def begin(self, reads: bool = False) -> None:
        """Begin a transaction; others wait at the fence."""
        with self._told("beginning a transaction"):
            self._run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" if reads else "BEGIN")

    def lock_fence(self, topology: str, scope: str) -> Fence | None:
        """Return what is stored in a scope, and lock it: a row of nothing but 0 where there was none."""
        found = super().lock_fence(topology, scope)
        if found is None:
            text = statement(
                "INSERT INTO $fence VALUES (%s, %s, 0, 0, 0, 0, '') ON CONFLICT (topology, scope) DO NOTHING",
                fence=FENCE,
            )
            with self._told("reading the fence"):
                self._run(text, [topology, scope])
            found = super().lock_fence(topology, scope)
        return None if found == Fence(0, 0, 0, 0) else found

    def commit(self) -> None:
        """Make all durable and visible."""
        with self._told("committing"):
            answer = self._db.execute("COMMIT", prepare=False).statusmessage
            if answer != "COMMIT":  # of a transaction that has failed before the server says so only here
                raise StoreFailed(f"{self._store} answered COMMIT by {answer}: nothing is stored")

    def rollback(self) -> None:
        """Undo all."""
        if self._db.info.transaction_status not in (TransactionStatus.IDLE, TransactionStatus.UNKNOWN):
            self._run("ROLLBACK")

    def reset(self) -> None:
        """Let the session be as a new connection's, in one round trip."""
        self._db.autocommit, self._db.row_factory, self._db.cursor_factory = True, tuple_row, psycopg.Cursor
        with self._told("resetting a connection"):
            self._db.execute(_RESET, prepare=False)
            self._set(self._db)

    def close(self) -> None:
        """Let go of it."""
        self._db.close()

    # ------------------------------------------------------------------------------------ rows

    def _unnested(self, table: Table, names: Sequence[str], parameter: str = "%s") -> str:
        """Return a source of rows: a parameter for each column, a list of its values."""
        casts = self.dialect.casts_of(table)
        lists = ", ".join(f"{parameter}::{casts[name]}[]" for name in names)
        return f"UNNEST({lists}) AS given ({self.dialect.names(names)})"

    def read(self, table: Table, keys: Sequence[Key]) -> dict[Key, Row]:
        """Return the rows of those keys that have one."""
        name = self.dialect.name(table.name)
        text = statement(
            "SELECT $columns FROM $given JOIN $table ON $joined",
            columns=", ".join(f"{name}.{self.dialect.name(column)}" for column in columns_of(table)),
            given=self._unnested(table, [column.name for column in table.key], "%b"),
            table=name,
            joined=self.dialect.joined(table),
        )
        with self._told(f"reading table {table.name!r}"), self._db.cursor(binary=True) as cursor:
            found = cursor.execute(text.encode(), [list(part) for part in zip(*keys, strict=True)]).fetchall()
        return self._rows(table, found)

    def _upsert(self, table: Table, columns: RowColumns, older: bool) -> int:
        if len(columns[0]) >= ROWS_MIN:
            return BulkWrite(self._db, self.dialect, table, columns).upsert(older)
        names = columns_of(table)
        key = [column.name for column in table.key]
        text = self.dialect.upsert_from(table.name, names, key, self._unnested(table, names), older)
        return self._db.execute(text.encode(), [list(values) for values in columns]).rowcount

    def delete(self, table: Table, keys: Sequence[Key]) -> None:
        """Delete rows."""
        text = statement(
            "DELETE FROM $table USING $given WHERE $joined",
            table=self.dialect.name(table.name),
            given=self._unnested(table, [column.name for column in table.key]),
            joined=self.dialect.joined(table),
        )
        with self._told(f"removing from table {table.name!r}"):
            self._run(text, [list(part) for part in zip(*keys, strict=True)])
