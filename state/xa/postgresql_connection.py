"""PreparingPostgreSQL: two-phase commit in PostgreSQL's words."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import psycopg

from stormline.state.errors import StoreFailed, StoreUnavailable
from stormline.state.postgresql_connection import PostgreSQLConnection
from stormline.state.sql_text import statement
from stormline.state.xa import ledger, postgresql_binary
from stormline.state.xa.connection import GRANT, locked
from stormline.topology.transaction_label import TransactionLabel
from stormline.topology.two_phase_commit import CommitOutcome

_LOCK = 7_766_271_020  # any number: of those who make the ledger
# The ledger's row is written only where something else was: it is what gives a transaction its number.
_INSERT = ledger.insert("clock_timestamp()", "WHERE txid_current_if_assigned() IS NOT NULL")
_INSERT_AND_PREPARE = f"{ledger.insert('clock_timestamp()', '')}; PREPARE TRANSACTION %s"
_INSERT_ID = ledger.insert("clock_timestamp()", "ON CONFLICT DO NOTHING")
_LISTED = (
    "SELECT gid, extract(epoch FROM clock_timestamp() - prepared)::float8 FROM pg_prepared_xacts "
    "WHERE database = current_database() AND starts_with(gid, %s) ORDER BY prepared"
)


class PreparingPostgreSQL(PostgreSQLConnection):
    """One connection to a PostgreSQL server; see `PreparingConnection`."""

    database_id: str

    def __init__(self, dsn: str, password: str | None, timeout_secs: float, store: str, lock_secs: float) -> None:
        super().__init__(dsn, password, timeout_secs, store, reads=True)
        self._held: dict[str, dict[str, str]] = {}
        self._copied = False
        self._as_text: set[str] = set()
        try:
            self._settings["lock_timeout"] = max(1, int(lock_secs * 1000))
            with self._told("looking at the ledger"):
                self._set(self._db)
                if self._run("SHOW max_prepared_transactions") == [("0",)]:
                    raise StoreFailed(
                        f"{store} prepares no transactions: its max_prepared_transactions is 0; set it in "
                        "postgresql.conf, or by ALTER SYSTEM SET max_prepared_transactions = 64, to at least the "
                        "transactions that are pending at once times the bolt's tasks, and start the server anew"
                    )
                self.database_id = self._found_id()
        except BaseException:
            self.close()
            raise

    def _found_id(self) -> str:
        if not self._columns(ledger.LEDGER):
            with self._db.transaction():
                self._run("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
                self._run(ledger.create('text COLLATE "C"', "timestamp with time zone"))
        found = self._run(ledger.DATABASE_ID)
        if not found:
            self._run(_INSERT_ID, ledger.own_row())
            found = self._run(ledger.DATABASE_ID)
        return str(found[0][0])

    def translated(self, error: BaseException) -> BaseException:
        """Return what an error of psycopg's means."""
        if isinstance(error, psycopg.errors.LockNotAvailable):
            return StoreUnavailable(locked(self._store, error))
        if isinstance(error, psycopg.errors.InFailedSqlTransaction):
            return StoreFailed(
                f"own SQL in a transaction of {self._store} has caught the error of a statement that failed: nothing "
                "can follow it; let it raise, or run what may fail in a savepoint: with connection.transaction():"
            )
        return super().translated(error)

    def _remedy(self, error: BaseException) -> str:
        if isinstance(error, psycopg.errors.InsufficientPrivilege):
            if "prepared transaction" in str(error):
                return "let the store connect as the role that has prepared it, until it is committed"
            return GRANT
        return (
            "make the table before: the bolt only inserts" if isinstance(error, psycopg.errors.UndefinedTable) else ""
        )

    def _gid(self, label: TransactionLabel) -> str:
        """Return the name of a transaction: PostgreSQL's are the server's, so it says of which database, or schema."""
        return f"{label.text}@{self.database_id}"

    # ------------------------------------------------------------------------------------ to write

    def start(self, label: TransactionLabel) -> None:
        """Begin a transaction."""
        self._held.clear()
        self._copied = False
        self.begin()

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Write rows into a table, by COPY; many in binary, where that is the same."""
        with self._told(f"writing table {table!r}"):
            if len(rows) < postgresql_binary.ROWS_MIN or not self._copied_in_binary(table, columns, rows):
                self._copy(table, columns, rows, None)
        self._copied = True

    def _copied_in_binary(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> bool:
        if table in self._as_text:
            return False
        types = postgresql_binary.binary_types(columns, self._types(table))
        if types is None or not postgresql_binary.fit(types, rows):
            return False
        try:
            with self._db.transaction():  # a savepoint
                self._copy(table, columns, rows, types)
        except postgresql_binary.CANNOT:
            self._as_text.add(table)
            return False
        return True

    def _copy(
        self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], types: Sequence[str] | None
    ) -> None:
        text = statement(
            "COPY $table ($columns) FROM STDIN$how",
            table=self.dialect.name(table),
            columns=self.dialect.names(columns),
            how=" (FORMAT BINARY)" if types else "",
        )
        with self._db.cursor() as cursor, cursor.copy(text.encode()) as copy:
            if types:
                copy.set_types(types)
            write_row = copy.write_row
            for row in rows:
                write_row(row)

    def _types(self, table: str) -> dict[str, str]:
        """Return the type of each column of a table, which nobody can change before the transaction's end."""
        if table not in self._held:
            self._run(statement("LOCK TABLE $table IN ROW EXCLUSIVE MODE", table=self.dialect.name(table)))
            self._held[table] = {name: kind for name, (kind, _) in self._columns(table).items()}
        return self._held[table]

    def prepare(self, label: TransactionLabel) -> bool:
        """Write the ledger's row, and prepare; in one round trip where it is known that something was written."""
        with self._told(f"preparing transaction {label}"):
            row = [label.scope, label.txid, label.number, self.database_id]
            if self._copied:
                cursor = psycopg.ClientCursor(self._db)
                self._prepared(cursor.execute(_INSERT_AND_PREPARE.encode(), [*row, self._gid(label)]))
            elif self._db.execute(_INSERT.encode(), row).rowcount:
                self.prepare_as(self._gid(label))
            else:
                self._run("ROLLBACK")
                return False
            return True

    def prepare_as(self, gid: str) -> None:
        """Prepare what is under way; of a transaction that has failed the server says so only in the tag."""
        self._prepared(self._db.execute(f"PREPARE TRANSACTION '{gid}'".encode(), prepare=False))

    def _prepared(self, cursor: psycopg.Cursor[Any]) -> None:
        """Look at what the last statement was answered by."""
        while cursor.nextset():
            pass
        answer = cursor.statusmessage
        if answer != "PREPARE TRANSACTION":
            raise StoreFailed(
                f"{self._store} answered PREPARE TRANSACTION by {answer}: nothing is stored; a statement had failed "
                "before, and own SQL caught its error: let it raise, or undo it to a savepoint"
            )

    def release(self) -> bool:
        """Let go of what is not prepared; a connection in order is used again."""
        try:
            self.rollback()
        except self.errors:
            self.close()
        return not self._db.closed

    # ------------------------------------------------------------------------------------ to end

    def commit_prepared(self, label: TransactionLabel) -> CommitOutcome:
        """Commit what was prepared; it can be done in no block."""
        with self._told(f"committing prepared transaction {label}"):
            try:
                self._db.execute(f"COMMIT PREPARED '{self._gid(label)}'".encode(), prepare=False)
                return CommitOutcome.DONE
            except psycopg.errors.UndefinedObject:  # a transaction is known until after it is visible
                stored = self._run(ledger.STORED, [label.scope, label.txid, label.number])
                return CommitOutcome.ALREADY if stored else CommitOutcome.LOST

    def abort_prepared(self, label: TransactionLabel) -> None:
        """Roll back what was prepared."""
        known = contextlib.suppress(psycopg.errors.UndefinedObject)
        with self._told(f"rolling back prepared transaction {label}"), known:
            self._db.execute(f"ROLLBACK PREPARED '{self._gid(label)}'".encode(), prepare=False)

    def listed(self, prefix: str) -> list[tuple[str, float | None]]:
        """Return label and age of what is prepared in this database."""
        with self._told("listing prepared transactions"):
            found = [(gid.partition("@"), age) for gid, age in self._run(_LISTED, [prefix])]
            return [(label, age) for (label, _, database_id), age in found if database_id == self.database_id]

    def forget(self, scope: str, before: int) -> None:
        """Remove the ledger's rows of a component's transactions before one."""
        with self._told("removing old rows of the ledger"):
            self._run(ledger.FORGET, [scope, before])
