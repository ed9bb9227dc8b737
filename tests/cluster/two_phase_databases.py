"""Databases for the contract of two-phase sinks: what PostgreSQL and MariaDB both do, said in the words of each."""

from __future__ import annotations

import itertools
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from stormline import TransactionLabel, Tuple
from stormline.state.xa import MariaDbXaSink, PostgresTwoPhaseSink
from stormline.state.xa.sink import SQLTwoPhaseSink
from stormline.topology.transaction_label import label_scope
from tests.cluster.store_databases import MariaDBDatabase, PostgreSQLDatabase
from tests.services.proxy import Protocol, Proxy

FIELDS = ["tx", "id", "who", "amount"]
Rows = Sequence[Sequence[Any]]


def row(*values: Any) -> Tuple:
    """Return a tuple as a bolt receives it."""
    return Tuple.of([(1, 1), *values], FIELDS)


class TwoPhaseDatabase(ABC):
    """A database of one test, with a table `entries` (who, amount), and a topology that writes into it."""

    prepares: bytes
    """What stands in a request that prepares; `commits`: in one that commits what is prepared."""
    commits: bytes
    aborts: bytes
    locked: str
    """What the message says of a lock that was not had."""
    database: PostgreSQLDatabase | MariaDBDatabase

    def __init__(self) -> None:
        self.scope = label_scope(f"topo{random.getrandbits(32)}", "sink")
        self._sinks: list[SQLTwoPhaseSink] = []
        self._proxies: list[Proxy] = []
        self._tasks = itertools.count()

    @abstractmethod
    def made(self, port: int | None, user: str, timeout_secs: float, how: dict[str, Any]) -> SQLTwoPhaseSink:
        """Return a sink."""

    @abstractmethod
    def make_table(self, name: str) -> None:
        """Make a table like `entries`, with `who` as its key."""

    @abstractmethod
    def prepare_by_hand(self, label: TransactionLabel) -> None:
        """Prepare a row under a label, without a ledger."""

    @abstractmethod
    def end_by_hand(self, label: TransactionLabel) -> None:
        """Roll a prepared transaction back, as an operator would."""

    @abstractmethod
    def make_user(self, name: str) -> None:
        """Make a user who may write, but not end what others have prepared, or not even read the ledger."""

    def sink(
        self,
        table: str | None = "entries",
        columns: Sequence[str] | None = ("who", "amount"),
        port: int | None = None,
        user: str = "",
        timeout_secs: float = 10.0,
        **how: Any,
    ) -> SQLTwoPhaseSink:
        """Return a sink, of which there may be many, as in many processes."""
        made = self.made(port, user, timeout_secs, {"table": table, "columns": columns, **how})
        self._sinks.append(made)
        return made

    def proxy(self, worth_losing: bytes) -> Proxy:
        """Return a proxy before the server, which can lose what has this in it, or the reply."""
        made = Proxy(self.database.server.port, Protocol(worth_losing))
        self._proxies.append(made)
        return made

    def label(self, txid: int = 1) -> TransactionLabel:
        return TransactionLabel(self.scope, txid, 1, txid, next(self._tasks), random.getrandbits(64))

    def prepared(self, sink: SQLTwoPhaseSink, *rows: Sequence[Any], txid: int = 1) -> Any:
        """Return the handle of a transaction that has written rows."""
        transaction = sink.begin_transaction(self.label(txid))
        try:
            for values in rows:
                sink.invoke(transaction, row(0, *values))
            return sink.pre_commit(transaction)
        except BaseException:
            sink.roll_back(transaction)
            raise

    def left(self) -> list[str]:
        """Return the labels of what is prepared, and not ended."""
        return [found.label for found in self.sink().list_prepared(self.scope)]

    def rows(self, table: str = "entries") -> list[tuple[Any, ...]]:
        """Return what is visible."""
        found = self.sql(f"SELECT who, amount FROM {table}")
        return sorted((who.decode() if isinstance(who, bytes) else who, amount) for who, amount in found)

    def sql(self, text: str) -> list[Any]:
        return self.database.sql(text)

    def close(self) -> None:
        for sink in self._sinks:
            sink.close()
        sink = self.sink()
        for found in sink.list_prepared(self.scope):
            sink.abort(found.handle)
        sink.close()
        for proxy in self._proxies:
            proxy.close()


class TwoPhasePostgreSQL(TwoPhaseDatabase):
    prepares = b"PREPARE TRANSACTION"
    commits = b"COMMIT PREPARED"
    aborts = b"ROLLBACK PREPARED"
    locked = "LockNotAvailable: canceling statement due to lock timeout"

    def __init__(self, database: PostgreSQLDatabase) -> None:
        super().__init__()
        self.database: PostgreSQLDatabase = database
        self.sql("CREATE TABLE entries (who text, amount bigint)")

    def made(self, port: int | None, user: str, timeout_secs: float, how: dict[str, Any]) -> SQLTwoPhaseSink:
        from stormline.state import PostgreSQLStore

        store = PostgreSQLStore(self.database.dsn(port, user or "chaos"), timeout_secs=timeout_secs)
        return PostgresTwoPhaseSink(store, **how)

    def make_table(self, name: str) -> None:
        self.sql(f"CREATE TABLE {name} (who text PRIMARY KEY, amount bigint)")

    def gid(self, label: TransactionLabel) -> str:
        list(self.sink().list_prepared(""))  # the ledger is there from then on
        (found,) = self.sql("SELECT database_id FROM stormline_xa WHERE scope = ''")[0]
        return f"{label.text}@{found.decode()}"

    def prepare_by_hand(self, label: TransactionLabel) -> None:
        self.sql(f"BEGIN; INSERT INTO entries VALUES ('x', 0); PREPARE TRANSACTION '{self.gid(label)}'")

    def end_by_hand(self, label: TransactionLabel) -> None:
        self.sql(f"ROLLBACK PREPARED '{self.gid(label)}'")

    def make_user(self, name: str) -> None:
        self.sql(f"CREATE ROLE {name} LOGIN")
        self.sql(f"GRANT USAGE ON SCHEMA {self.database.schema} TO {name}")


class TwoPhaseMariaDB(TwoPhaseDatabase):
    prepares = b"XA PREPARE"
    commits = b"XA COMMIT"
    aborts = b"XA ROLLBACK"
    locked = "OperationalError: .1205, 'Lock wait timeout exceeded"

    def __init__(self, database: MariaDBDatabase) -> None:
        super().__init__()
        self.database: MariaDBDatabase = database
        self.sql("CREATE TABLE entries (who varchar(64), amount bigint) ENGINE=InnoDB")

    def made(self, port: int | None, user: str, timeout_secs: float, how: dict[str, Any]) -> SQLTwoPhaseSink:
        from stormline.state import MySQLStore

        url = self.database.mariadb.url(self.database.name, port, user or "stormline")
        return MariaDbXaSink(MySQLStore(url, timeout_secs=timeout_secs), **how)

    def make_table(self, name: str) -> None:
        self.sql(f"CREATE TABLE {name} (who varchar(64) PRIMARY KEY, amount bigint) ENGINE=InnoDB")

    def prepare_by_hand(self, label: TransactionLabel) -> None:
        xid = f"'{label.scope}','{label.number}'"
        with self.database.mariadb.connected(database=self.database.name) as db, db.cursor() as cursor:
            for text in (
                f"XA START {xid}",
                "INSERT INTO entries VALUES ('x', 0)",
                f"XA END {xid}",
                f"XA PREPARE {xid}",
            ):
                cursor.execute(text)

    def end_by_hand(self, label: TransactionLabel) -> None:
        self.sql(f"XA ROLLBACK '{label.scope}','{label.number}'")

    def make_user(self, name: str) -> None:
        self.sql(f"CREATE USER {name}@'127.0.0.1'")
        self.sql(f"GRANT INSERT ON {self.database.name}.entries TO {name}@'127.0.0.1'")


MADE: dict[str, Callable[[Any], TwoPhaseDatabase]] = {"postgresql": TwoPhasePostgreSQL, "mariadb": TwoPhaseMariaDB}
