"""PreparingMariaDB: two-phase commit in MariaDB's words.

MariaDB 10.5 and later keep a prepared transaction when its connection ends, but let others commit it from a moment
*before* the storage engine has let go of it: XA COMMIT within that moment is acknowledged, commits nothing, and the
server forgets the name until it is started anew. So whoever prepares waits until the server has ended the session, and
whoever commits looks at the ledger's row afterwards, in place of trusting the answer.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import pymysql

from stormline.state.errors import StoreFailed, StoreUnavailable
from stormline.state.mysql_connection import MySQLConnection
from stormline.state.sql_text import statement
from stormline.state.xa import ledger
from stormline.state.xa.connection import GRANT, locked
from stormline.topology.transaction_label import TransactionLabel
from stormline.topology.two_phase_commit import CommitOutcome

LOOKS_AGAIN_SECS = 0.002
SETTLES_SECS = 0.01
"""How long the storage engine may take to let go of a session that is in no list any more: microseconds, mostly."""

_UNKNOWN = 1397
_LOCKED = 1205
_ROLLED_BACK = frozenset({1401, 1402, 1613, 1614})
"""The server has rolled the transaction back, by a deadlock among others: a replay may do better."""
_DENIED = frozenset({1044, 1142, 1143, 1227, 1370})
_NO_TABLE = 1146
_INSERT = ledger.insert("CURRENT_TIMESTAMP(6)", "")
_INSERT_ID = ledger.insert("CURRENT_TIMESTAMP(6)", "ON DUPLICATE KEY UPDATE txid = 0")
_IS_THERE = "SELECT 1 FROM information_schema.processlist WHERE id = %s"
_WRITES = "SHOW SESSION STATUS WHERE Variable_name IN ('Handler_delete', 'Handler_update', 'Handler_write')"
# What is not committed yet can be read like this, so that the age of what is prepared can be told.
_UNCOMMITTED = "SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED"
_AGES = statement(
    "SELECT scope, number, timestampdiff(MICROSECOND, prepared_at, CURRENT_TIMESTAMP(6)) / 1e6 FROM $ledger "
    "WHERE (scope, number) IN (%s)",
    ledger=ledger.LEDGER,
)


def _number(error: BaseException) -> object:
    return error.args[0] if isinstance(error, pymysql.MySQLError) and error.args else None


class PreparingMariaDB(MySQLConnection):
    """One connection to a MariaDB server; see `PreparingConnection`."""

    database_id: str

    def __init__(
        self, place: Mapping[str, Any], password: str, timeout_secs: float, store: str, lock_secs: float
    ) -> None:
        super().__init__(place, password, timeout_secs, store, reads=True)
        try:
            with self._told("looking at the ledger"):
                server = self._db.get_server_info()
                if "MariaDB" not in server:
                    raise StoreFailed(
                        f"{store} is a server of version {server}, expected a MariaDB: MySQL's XA transactions have "
                        "other rules; use a store of stormline.state"
                    )
                self._run("SET SESSION innodb_lock_wait_timeout = %s", [max(1, int(lock_secs))])
                self.database_id = self._found_id()
                self._format = 1 + int(self.database_id[:7], 16)
                self._writes = self._run(_WRITES)
        except BaseException:
            self._db.close()
            raise

    def _found_id(self) -> str:
        try:
            found = self._run(ledger.DATABASE_ID)
        except pymysql.MySQLError as error:  # to look for the table first takes 10 ms, for each connection
            if _number(error) != _NO_TABLE:
                raise
            found = []
            self._run(ledger.create("varchar(64)", "timestamp(6)", " ENGINE=InnoDB CHARSET=ascii COLLATE=ascii_bin"))
        if not found:
            self._run(_INSERT_ID, ledger.own_row())
            found = self._run(ledger.DATABASE_ID)
        return str(found[0][0])

    def translated(self, error: BaseException) -> BaseException:
        """Return what an error of PyMySQL's means."""
        if _number(error) == _LOCKED:
            return StoreUnavailable(locked(self._store, error))
        if _number(error) in _ROLLED_BACK:
            return StoreUnavailable(f"{self._store} has rolled the transaction back: {error}; the batch is replayed")
        return super().translated(error)

    def _remedy(self, error: BaseException) -> str:
        number = _number(error)
        return GRANT if number in _DENIED else "make the table before: the bolt only inserts" * (number == _NO_TABLE)

    def _xid(self, label: TransactionLabel) -> str:
        """Return the name of a transaction: MariaDB's are the server's, so the format says of which database it is."""
        return f"'{label.scope}','{label.number}',{self._format}"

    # ------------------------------------------------------------------------------------ to write

    def start(self, label: TransactionLabel) -> None:
        """Begin a transaction."""
        with self._told("beginning a transaction"):
            self._run(f"XA START {self._xid(label)}")

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Write rows into a table."""
        text = statement(
            "INSERT INTO $table ($columns) VALUES ($parameters)",
            table=self.dialect.name(table),
            columns=self.dialect.names(columns),
            parameters=self.dialect.parameters(len(columns)),
        )
        with self._told(f"writing table {table!r}"):
            self._run_many(text, rows)

    def prepare(self, label: TransactionLabel) -> bool:
        """Write the ledger's row, and prepare."""
        with self._told(f"preparing transaction {label}"):
            if self._run(_WRITES) == self._writes:
                return False
            self._run(_INSERT, [label.scope, label.txid, label.number, self.database_id])
            self._run(f"XA END {self._xid(label)}")
            self._run(f"XA PREPARE {self._xid(label)}")
            return True

    def release(self) -> bool:
        """End the session: the server drops what is not prepared."""
        self.close()
        return False

    def secured(self) -> Mapping[str, Any]:
        """Return what lets the next connection be as this one, without reading all certificates of this machine again.

        PyMySQL reads them for each connection, in 10 to 150 ms, to find out whether the server speaks TLS.
        """
        with self._told("looking at the connection"):
            ((_, cipher),) = self._run("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
        return {"ssl": self._db.ctx} if cipher else {"ssl_disabled": True}

    @property
    def session(self) -> int:
        """The server's number of this session."""
        return int(self._db.thread_id())

    def wait_for_end(self, session: int) -> None:
        """Wait until the server has ended another session of this user's: others can commit what it prepared."""
        deadline = time.monotonic() + self._timeout_secs
        with self._told("waiting for the end of a session"):
            while self._run(_IS_THERE, [session]):
                if time.monotonic() > deadline:
                    raise StoreUnavailable(f"{self._store} has not ended session {session} in {self._timeout_secs:g} s")
                time.sleep(LOOKS_AGAIN_SECS)
        time.sleep(SETTLES_SECS)

    # ------------------------------------------------------------------------------------ to end

    def commit_prepared(self, label: TransactionLabel) -> CommitOutcome:
        """Commit what was prepared; the ledger's row proves that it is."""
        with self._told(f"committing prepared transaction {label}"):
            known = self._end("COMMIT", label)
            if self._stored(label):
                return CommitOutcome.DONE if known else CommitOutcome.ALREADY
            if not known and label.text in self._names():  # its connection is still open, or somebody is at it
                return CommitOutcome.RETRY
            if not self._stored(label, uncommitted=True):
                return CommitOutcome.LOST
            if self._stored(label):  # by somebody else, just now
                return CommitOutcome.ALREADY
            raise self._forgotten(label)

    def abort_prepared(self, label: TransactionLabel) -> None:
        """Roll back what was prepared."""
        with self._told(f"rolling back prepared transaction {label}"):
            known = self._end("ROLLBACK", label)
            if known and self._stored(label, uncommitted=True):
                raise self._forgotten(label)

    def _end(self, how: str, label: TransactionLabel) -> bool:
        """Return whether the server knew the transaction."""
        try:
            self._run(f"XA {how} {self._xid(label)}")
        except pymysql.MySQLError as error:
            if _number(error) != _UNKNOWN:
                raise
            return False
        return True

    def _stored(self, label: TransactionLabel, uncommitted: bool = False) -> bool:
        if uncommitted:
            self._run(_UNCOMMITTED)
        return bool(self._run(ledger.STORED, [label.scope, label.txid, label.number]))

    def _forgotten(self, label: TransactionLabel) -> StoreUnavailable:
        return StoreUnavailable(
            f"{self._store} still holds transaction {label} as prepared, and does not know its name any more: it was "
            "ended in the very moment in which the connection that had prepared it went away (a fault of MariaDB's); "
            "start the server anew: it finds the transaction then, and it is ended as it should be"
        )

    def _names(self) -> dict[str, TransactionLabel]:
        """Return by label what the server lists as prepared in this database."""
        found = {}
        for format_id, length, _, data in self._run("XA RECOVER"):
            text = bytes(data).decode("ascii", "replace") if isinstance(data, (bytes, bytearray)) else str(data)
            label = TransactionLabel.read(f"{text[:length]}-{text[length:]}")
            if label is not None and format_id == self._format:
                found[label.text] = label
        return found

    def listed(self, prefix: str) -> list[tuple[str, float | None]]:
        """Return label and age of what is prepared in this database."""
        with self._told("listing prepared transactions"):
            labels = [label for text, label in self._names().items() if text.startswith(prefix)]
            if not labels:
                return []
            self._run(_UNCOMMITTED)
            found = self._run(
                _AGES.replace("%s", ", ".join(["(%s, %s)"] * len(labels))),
                [part for label in labels for part in (label.scope, label.number)],
            )
            ages = {(scope, number): float(age) for scope, number, age in found}
            return [(label.text, ages.get((label.scope, label.number))) for label in labels]

    def forget(self, scope: str, before: int) -> None:
        """Remove the ledger's rows of a component's transactions before one."""
        with self._told("removing old rows of the ledger"):
            self._run(ledger.FORGET, [scope, before])
