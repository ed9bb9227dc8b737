"""MySQLConnection: a store's work, said in the SQL of MariaDB and MySQL, by PyMySQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pymysql
from pymysql.constants import SERVER_STATUS
from pymysql.converters import escape_string

from stormline.state.columns import INT_MAX, ColumnType
from stormline.state.errors import RefusedValue, StoreUnavailable
from stormline.state.fence import Fence
from stormline.state.mysql_session import MySQLSession
from stormline.state.sql_connection import GONE, GRANT, IDLE_TIMES, SQLConnection
from stormline.state.sql_text import FENCE, Dialect, columns_of, statement
from stormline.state.sql_values import SQLValues
from stormline.state.table import TXID, Key, Row, RowColumns, Table

KEYS_MAX = 1000
"""Of one query."""
STATEMENT_CHARS_MAX = 1 << 19
"""Of one statement that writes rows, unless one row alone has more: servers take 16 MiB."""

_TYPES = {
    ColumnType.INTEGER: "bigint",
    ColumnType.REAL: "double",
    ColumnType.TEXT: "longtext",
    ColumnType.BYTES: "longblob",
    ColumnType.BOOLEAN: "tinyint(1)",
    ColumnType.TIMESTAMP: "datetime(6)",
    ColumnType.DATE: "date",
    ColumnType.DECIMAL: "decimal(65,30)",
    ColumnType.PACKED: "longblob",
}
_KEY_TYPES = {ColumnType.TEXT: "varchar(255)", ColumnType.BYTES: "varbinary(1020)"}
_HELD = {
    "bigint": ("bigint", "int", "mediumint", "smallint"),
    "double": ("double",),
    "longtext": ("longtext", "mediumtext", "text", "varchar"),
    "varchar": ("varchar",),
    "longblob": ("longblob", "mediumblob", "blob", "varbinary"),
    "varbinary": ("varbinary",),
    "tinyint": ("tinyint",),
    "datetime": ("datetime",),
    "date": ("date",),
    "decimal": ("decimal",),
}
"""What else holds the values of our types as they are, as long as they fit; lengths are the server's to check."""
_EXACT = ("datetime(6)", "decimal(65,30)")
"""What would be rounded in silence in any other width."""
_AWAY = frozenset(
    {
        *(
            1020,
            1021,
            1040,
            1041,
            1053,
            1077,
            1114,
            1152,
            1158,
            1159,
            1160,
            1161,
            1203,
            1205,
            1213,
            1290,
            1317,
            1836,
            1927,
        ),
        *(2002, 2003, 2006, 2013, 2014, 2055, 3024, 3169, 4031),
    }
)
"""Numbers of errors after which a replay may find the server as it should be: away, full, locked, read-only."""
_OUT_OF_RANGE = 1690
_DISK_FULL = "No space left on device"
_DENIED = frozenset({1044, 1142, 1143, 1227, 1370})
_NO_TABLE = 1146
_ROW = frozenset({1364, 1366, 3819, 4025})
"""A column without a value, text that is none, and a CHECK: of MySQL's, and of MariaDB's."""


def _number(error: BaseException) -> object:
    return error.args[0] if isinstance(error, pymysql.MySQLError) and error.args else None


def _decimal(value: Decimal) -> Decimal:
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and (exponent < -30 or value.adjusted() > 34):
        raise RefusedValue(f"MySQL holds 35 digits before the point and 30 after it, and {value} has more; use object")
    return value


def _boolean(value: int) -> bool:
    if value not in (0, 1):
        raise ValueError(f"{value!r} is neither 0 nor 1")
    return bool(value)


class _MySQL(Dialect):
    """MySQL's own way of an upsert."""

    def otherwise(self, table: str, columns: Sequence[str], key: Sequence[str], older: bool) -> str:
        """Return what an insert does where there is a row of this key; where `older`, only if its txid is.

        A row of the same txid is left alone then, any other one is an error: by a number that no column holds. The
        txid is the last one to be set: what is set before is decided by what it was.
        """
        sets = (f"{self.name(name)} = {self._set(self.name(name), older)}" for name in columns if name not in key)
        return f"ON DUPLICATE KEY UPDATE {', '.join(sets)}"

    def _set(self, column: str, older: bool) -> str:
        given, txid = f"VALUES({column})", self.name(TXID)
        if not older:
            return given
        if column != txid:
            return f"IF({txid} = VALUES({txid}), {column}, {given})"
        return f"IF({txid} BETWEEN 0 AND {given}, {given}, {INT_MAX} + ABS(COALESCE({txid}, 1)))"


class MySQLConnection(SQLConnection):
    """One connection to a MariaDB or MySQL server; see `StoreConnection`."""

    values = SQLValues(
        {
            ColumnType.TIMESTAMP: lambda value: value.astimezone(UTC).replace(tzinfo=None),
            ColumnType.DECIMAL: _decimal,
        },
        {
            ColumnType.TIMESTAMP: (datetime, lambda value: value.replace(tzinfo=UTC)),
            ColumnType.BOOLEAN: (int, _boolean),
        },
    )
    errors = (pymysql.MySQLError, OSError)

    def __init__(self, place: Mapping[str, Any], password: str, timeout_secs: float, store: str, reads: bool) -> None:
        super().__init__(store)
        self._place = {**place, "password": password}
        self._timeout_secs = timeout_secs
        self.dialect = _MySQL("`", "%s", _TYPES, _KEY_TYPES, for_update=" FOR UPDATE")
        with self._told("connecting"):
            self._db = self._connected()
        if reads:
            return
        try:
            with self._told("making its own tables"):
                self._make_own_tables()
        except BaseException:
            self._db.close()
            raise

    def _connected(self) -> Any:
        wait = max(1, int(self._timeout_secs))
        db: Any = MySQLSession(
            **self._place,
            charset="utf8mb4",
            autocommit=True,  # transactions are begun and ended in so many words
            connect_timeout=wait,
            read_timeout=wait + 1,
            write_timeout=wait + 1,
        )
        is_mariadb = "MariaDB" in db.get_server_info()
        # Else a server that did not hear of our end would keep the fence locked, and all that comes after, for hours.
        # MySQL knows one limit only, of connections that wait for the next transaction too: those are replaced.
        idle = "idle_transaction_timeout" if is_mariadb else "wait_timeout"
        with db.cursor() as cursor:
            cursor.execute(
                "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', innodb_lock_wait_timeout = %s, "
                f"time_zone = '+00:00', {idle} = %s",
                [wait, IDLE_TIMES * wait],
            )
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        # By bytes, and with spaces at the end: else keys that differ would be one.
        binary = "utf8mb4_nopad_bin" if is_mariadb else "utf8mb4_0900_bin"
        self.dialect.table_options = f" ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE={binary}"
        return db

    def _make_own_tables(self) -> None:
        if not self._columns(FENCE):
            for text in self.dialect.own_tables("varchar(255)", "text", "bigint"):
                self._run(text)

    @property
    def native(self) -> Any:
        """What the user's own SQL is run on."""
        return self._db

    def _in_transaction(self) -> bool:
        return bool(self._db.open and self._db.server_status & SERVER_STATUS.SERVER_STATUS_IN_TRANS)

    @contextmanager
    def own_sql(self) -> Iterator[Any]:
        """Give the connection to the user's own SQL; calls that would end the transaction are refused."""

        def refuse() -> None:
            raise self._ended_by_own_sql("tries to end")

        self._db.commit = self._db.rollback = refuse
        try:
            with super().own_sql() as db:
                yield db
        finally:
            del self._db.commit, self._db.rollback

    def _run(self, text: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._db.cursor() as cursor:
            cursor.execute(text, parameters or None)
            return list(cursor.fetchall()) if cursor.description else []

    def _run_many(self, text: str, rows: Iterable[Sequence[Any]]) -> int:
        with self._db.cursor() as cursor:
            return int(cursor.executemany(text, list(rows)) or 0)

    def _columns(self, table: str) -> dict[str, tuple[str, int]]:
        found = self._run(
            "SELECT c.column_name, c.column_type, coalesce(c.collation_name, ''), coalesce(s.seq_in_index, 0) "
            "FROM information_schema.columns c LEFT JOIN information_schema.statistics s "
            "ON s.table_schema = c.table_schema AND s.table_name = c.table_name AND s.column_name = c.column_name "
            "AND s.index_name = 'PRIMARY' WHERE c.table_schema = database() AND c.table_name = %s",
            [table],
        )
        return {
            str(name): (f"{kind} COLLATE {collation}" if collation else str(kind), int(place))
            for name, kind, collation, place in found
        }

    def _holds(self, declared: str, wanted: str) -> bool:
        kind, _, collation = declared.partition(" COLLATE ")
        if wanted in _EXACT:
            return kind == wanted
        return kind.partition("(")[0] in _HELD[wanted.partition("(")[0]] and (
            not collation or collation.endswith(("nopad_bin", "0900_bin"))
        )

    def translated(self, error: BaseException) -> BaseException:
        """Return what an error of PyMySQL's means."""
        if (
            _number(error) in _AWAY
            or _DISK_FULL in str(error)
            or isinstance(error, (pymysql.InterfaceError, TimeoutError))
        ):
            return StoreUnavailable(
                f"{self._store} is not available: {type(error).__name__}: {error}; the batch is replayed until it is"
            )
        return error

    def _refuses_row(self, error: BaseException) -> bool:
        return isinstance(error, (pymysql.DataError, pymysql.IntegrityError)) or _number(error) in _ROW

    def _remedy(self, error: BaseException) -> str:
        number = _number(error)
        return GRANT if number in _DENIED else GONE if number == _NO_TABLE else ""

    def violates_constraint(self, error: BaseException) -> bool:
        """Return whether the user's own SQL failed by a constraint of a table."""
        return isinstance(error, pymysql.IntegrityError)

    # ------------------------------------------------------------------------------------ transaction and fence

    def begin(self, reads: bool = False) -> None:
        """Begin a transaction; others wait at the fence."""
        with self._told("beginning a transaction"):
            if reads:  # of the next transaction alone: all that it reads is of one moment
                self._run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            self._run("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY" if reads else "START TRANSACTION")

    def lock_fence(self, topology: str, scope: str) -> Fence | None:
        """Return what is stored in a scope, and lock it: a row of nothing but 0 where there was none."""
        found = super().lock_fence(topology, scope)
        if found is None:
            text = statement("INSERT IGNORE INTO $fence VALUES (%s, %s, 0, 0, 0, 0, '')", fence=FENCE)
            with self._told("reading the fence"):
                self._run(text, [topology, scope])
            found = super().lock_fence(topology, scope)
        return None if found == Fence(0, 0, 0, 0) else found

    def make_table(self, table: Table, topology: str) -> None:
        """Make a map's table by another connection: a statement that makes one commits what is under way."""
        with self._told("connecting"):
            ours, self._db = self._db, self._connected()
        try:
            super().make_table(table, topology)
        finally:
            self._db.close()
            self._db = ours

    def commit(self) -> None:
        """Make all durable and visible."""
        with self._told("committing"):
            self._run("COMMIT")

    def rollback(self) -> None:
        """Undo all."""
        if self._db.open:
            self._run("ROLLBACK")

    def reset(self) -> None:
        """Let the session be as a new connection's: it is one."""
        self.close()
        with self._told("connecting"):
            self._db = self._connected()

    def close(self) -> None:
        """Let go of it."""
        if self._db.open:
            self._db.close()

    # ------------------------------------------------------------------------------------ rows

    def _among(self, table: Table, keys: Sequence[Key]) -> tuple[str, list[Any]]:
        """Return the condition that a row has one of these keys, and its parameters."""
        width = len(table.key)
        names = self.dialect.names([column.name for column in table.key])
        one = self.dialect.parameters(width)
        of_each = one if width == 1 else f"({one})"
        left = names if width == 1 else f"({names})"
        written = self.values.written(table.key, keys)
        return f"{left} IN ({', '.join([of_each] * len(keys))})", [part for key in written for part in key]

    def read(self, table: Table, keys: Sequence[Key]) -> dict[Key, Row]:
        """Return the rows of those keys that have one."""
        found: list[tuple[Any, ...]] = []
        for i in range(0, len(keys), KEYS_MAX):
            condition, parameters = self._among(table, keys[i : i + KEYS_MAX])
            text = statement(
                "SELECT $columns FROM $table WHERE $condition",
                columns=self.dialect.names(columns_of(table)),
                table=self.dialect.name(table.name),
                condition=condition,
            )
            with self._told(f"reading table {table.name!r}"):
                found += self._run(text, parameters)
        return self._rows(table, found)

    def _upsert(self, table: Table, columns: RowColumns, older: bool) -> int:
        """Insert or replace rows; return how many, or 0 where one was in the way."""
        names = columns_of(table)
        begin = statement(
            "INSERT INTO $name ($columns) VALUES ",
            name=self.dialect.name(table.name),
            columns=self.dialect.names(names),
        )
        end = " " + self.dialect.otherwise(table.name, names, [column.name for column in table.key], older)
        with self._db.cursor() as cursor:
            literals = [_literals(cursor, values) for values in columns]
            rows = [f"({','.join(row)})" for row in zip(*literals, strict=True)]
            for part in _parts(rows):
                try:
                    cursor.execute(begin + ",".join(part) + end)
                except pymysql.MySQLError as error:
                    if older and error.args[:1] == (_OUT_OF_RANGE,):
                        return 0
                    raise
        return len(rows)

    def delete(self, table: Table, keys: Sequence[Key]) -> None:
        """Delete rows."""
        for i in range(0, len(keys), KEYS_MAX):
            condition, parameters = self._among(table, keys[i : i + KEYS_MAX])
            text = statement(
                "DELETE FROM $table WHERE $condition", table=self.dialect.name(table.name), condition=condition
            )
            with self._told(f"removing from table {table.name!r}"):
                self._run(text, parameters)


def _literals(cursor: Any, values: Sequence[Any]) -> list[str]:
    """Return values as they stand in a statement: of the usual types without a call of the cursor's for each."""
    types = set(map(type, values))
    if types == {int}:
        return list(map(str, values))
    if types == {str}:
        return [f"'{text}'" for text in map(escape_string, values)]
    return [cursor.mogrify("%s", [value]) for value in values]


def _parts(rows: Sequence[str]) -> Iterator[Sequence[str]]:
    """Cut rows, as they stand in a statement, into as many as one takes."""
    begin = chars = 0
    for i, row in enumerate(rows):
        chars += len(row)
        if chars > STATEMENT_CHARS_MAX and i > begin:
            yield rows[begin:i]
            begin, chars = i, len(row)
    if begin < len(rows):
        yield rows[begin:]
