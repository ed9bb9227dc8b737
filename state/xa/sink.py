"""SQLTwoPhaseSink: what the sinks of PostgreSQL and MariaDB have in common."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

from stormline.state.columns import check_name
from stormline.state.errors import InvalidStore, StoreMismatch, StoreUnavailable
from stormline.state.store import Store
from stormline.state.xa.connection import PreparingConnection
from stormline.state.xa.ledger import FORGET_EVERY, KEPT_TXIDS
from stormline.topology.errors import shown
from stormline.topology.fields import Fields
from stormline.topology.transaction_label import TransactionLabel
from stormline.topology.tuples import Tuple, TupleSource
from stormline.topology.two_phase_commit import CommitOutcome, PreparedTransaction, TwoPhaseCommitSink

if TYPE_CHECKING:
    import pyarrow

ROWS_MAX = 25_000
"""So many rows wait in memory before they are sent."""

Rows = Sequence[Sequence[Any]]
Write = Callable[[Any, Rows], None]
_T = TypeVar("_T")

log = logging.getLogger("stormline")


@dataclass(slots=True)
class SQLTransaction:
    """One transaction that is being written.

    `rows` wait: of tuples with these `fields`, of which `columns` are written, whose values are at `places`.
    """

    label: TransactionLabel
    connection: PreparingConnection
    fields: Fields | None = None
    columns: Sequence[str] = ()
    places: Sequence[int] = ()
    rows: list[list[Any]] = field(default_factory=list)
    prepares: bool = False


def taken(rows: Rows, places: Sequence[int]) -> Rows:
    """Return the values at some places of each row."""
    if len(places) > 1:
        return list(map(itemgetter(*places), rows))
    return [tuple(row[i] for i in places) for row in rows]


class SQLTwoPhaseSink(TwoPhaseCommitSink):
    """Writes rows into a database; `PostgresTwoPhaseSink` and `MariaDbXaSink` know one each.

    Args:
        store (Store): Where it is: a PostgreSQLStore, or a MySQLStore that leads to a MariaDB.
        table (str | None): The table that takes each tuple as a row; it must be there.
        columns (Sequence[str] | None): Which fields are taken, in the columns of the same names; None: all behind the
            attempt.
        write (Write | None): In place of `table`: `write(connection, rows)` runs your own SQL for many rows on the
            driver's own connection, whose transaction it must not end. A row is the values of `columns`.
        lock_secs (float): How many seconds to wait for a lock that somebody else holds; MariaDB knows whole ones.

    Raises:
        InvalidStore: They are something else.
    """

    def __init__(
        self,
        store: Store,
        table: str | None = None,
        columns: Sequence[str] | None = None,
        *,
        write: Write | None = None,
        lock_secs: float = 1.0,
    ) -> None:
        who = type(self).__name__
        if not isinstance(store, self._stores):
            raise InvalidStore(f"{who} is given {shown(store)}, expected a {self._stores.__name__}")
        if (table is None) == (write is None):
            raise InvalidStore(
                f"{who} is given {'both' if table else 'neither'} a table and a function that writes, expected one of "
                f"them: {who}(store, 'payments'), or {who}(store, write=insert_payments)"
            )
        if table is not None:
            check_name(table, f"the table of a {who}")
        if isinstance(columns, str):
            raise InvalidStore(f"the columns of a {who} are {columns!r}, expected a list of names")
        for name in columns or ():
            check_name(name, f"a column of a {who}")
        if write is not None and not callable(write):
            raise InvalidStore(f"{who} is given write={shown(write)}, expected a function write(connection, rows)")
        if isinstance(lock_secs, bool) or not isinstance(lock_secs, (int, float)) or not 0 < lock_secs < 1e6:
            raise InvalidStore(f"lock_secs of a {who} is {shown(lock_secs)}, expected a number of seconds, more than 0")
        self.store = store
        self.table = table
        self.columns = None if columns is None else tuple(columns)
        self.write = write
        self.lock_secs = lock_secs
        self._free: list[PreparingConnection] = []
        self._asks: PreparingConnection | None = None
        self._forgotten: dict[str, int] = {}

    _stores: type[Store]

    @abstractmethod
    def _connected(self) -> PreparingConnection:
        """Return a new connection; the ledger is there."""

    def close(self) -> None:
        """Close all connections."""
        kept, self._free = self._free, []
        for connection in kept:
            connection.close()
        if self._asks is not None:
            self._asks.close()
            self._asks = None

    # ------------------------------------------------------------------------------------ on the executors

    def begin_transaction(self, label: TransactionLabel) -> SQLTransaction:
        """Begin a transaction of the database, on a connection of its own.

        Args:
            label (TransactionLabel): its name in the database.
        """
        while self._free:
            connection = self._free.pop()
            try:
                connection.start(label)
                return SQLTransaction(label, connection)
            except StoreUnavailable:  # the server has closed it meanwhile: a new one tells whether it is away
                connection.close()
        connection = self._connected()
        try:
            connection.start(label)
        except BaseException:
            connection.close()
            raise
        return SQLTransaction(label, connection)

    def invoke(self, transaction: SQLTransaction, tup: Tuple) -> None:
        """Keep a tuple's values, until there are many.

        Args:
            transaction (SQLTransaction): what `begin_transaction` returned.
            tup (Tuple): what has arrived.
        """
        self._keep(transaction, tup.fields, (tup.values,))

    def invoke_rows(self, transaction: SQLTransaction, rows: Sequence[list[Any]], source: TupleSource) -> None:
        """Keep the values of tuples, until there are many.

        Args:
            transaction (SQLTransaction): what `begin_transaction` returned.
            rows (Sequence[list[Any]]): the values of each tuple, its attempt first.
            source (TupleSource): who emitted them.
        """
        self._keep(transaction, source.fields, rows)

    def _keep(self, transaction: SQLTransaction, fields: Fields, rows: Sequence[list[Any]]) -> None:
        if fields is not transaction.fields and fields != transaction.fields:
            self._flush(transaction)
            transaction.columns = list(fields[1:] if self.columns is None else self.columns)
            transaction.places = [fields.field_index(name) for name in transaction.columns]
            transaction.fields = fields
        transaction.rows += rows
        if len(transaction.rows) >= ROWS_MAX:
            self._flush(transaction)

    def invoke_batch(self, transaction: SQLTransaction, batch: pyarrow.RecordBatch) -> None:
        """Write the rows of a record batch.

        Args:
            transaction (SQLTransaction): what `begin_transaction` returned.
            batch (pyarrow.RecordBatch): a column for each field of the stream after the first.
        """
        self._flush(transaction)
        names = list(batch.schema.names if self.columns is None else self.columns)
        for begin in range(0, batch.num_rows, ROWS_MAX):
            part = batch.slice(begin, ROWS_MAX)
            rows = list(zip(*(part.column(name).to_pylist() for name in names), strict=True))
            self._write_rows(transaction, names, rows)

    def _flush(self, transaction: SQLTransaction) -> None:
        rows, transaction.rows = transaction.rows, []
        if rows:
            self._write_rows(transaction, transaction.columns, taken(rows, transaction.places))

    def _write_rows(self, transaction: SQLTransaction, columns: Sequence[str], rows: Rows) -> None:
        if self.write is None:
            assert self.table is not None
            transaction.connection.insert(self.table, columns, rows)
            return
        try:
            with transaction.connection.own_sql() as native:
                self.write(native, rows)
        except Exception as error:
            meant = transaction.connection.translated(error)
            if meant is error:
                raise
            raise meant from error

    def pre_commit(self, transaction: SQLTransaction) -> list[str] | None:
        """Write what is left, and prepare; return label and database, or None where nothing was written.

        Args:
            transaction (SQLTransaction): what `begin_transaction` returned.
        """
        self._flush(transaction)
        connection = transaction.connection
        transaction.prepares = True
        prepared = connection.prepare(transaction.label)
        handle = [transaction.label.text, connection.database_id] if prepared else None
        if connection.release():
            self._free.append(connection)
        elif prepared:
            self._settle(connection)
        return handle

    def _settle(self, connection: PreparingConnection) -> None:
        """Wait until what a connection has prepared, which is closed now, can be ended by others."""

    def roll_back(self, transaction: SQLTransaction) -> None:
        """Roll back what is not prepared, and what may have been, where the answer got lost.

        Args:
            transaction (SQLTransaction): what `begin_transaction` returned.
        """
        reusable = transaction.connection.release()
        if reusable:
            self._free.append(transaction.connection)
        if not transaction.prepares:
            return
        if not reusable:
            self._settle(transaction.connection)
        connection = self._connected()
        try:
            connection.abort_prepared(transaction.label)
        finally:
            connection.close()

    # ------------------------------------------------------------------------------------ in the driver

    def commit(self, handle: Any) -> CommitOutcome:
        """Commit what was prepared; where the database knows no such transaction, the ledger in it tells why.

        Args:
            handle (Any): what `pre_commit` returned.
        """
        label, database_id = self._read(handle)

        def commit(connection: PreparingConnection) -> CommitOutcome:
            self._check(connection, label, database_id)
            return connection.commit_prepared(label)

        outcome = self._asked(commit)
        if outcome is CommitOutcome.LOST:
            log.error(
                "%s knows no prepared transaction %s, and its ledger no committed one: it was rolled back, by hand or "
                "with a copy of the database that was brought back",
                self.store,
                label,
            )
        elif outcome is CommitOutcome.DONE:
            self._forget_before(label)
        return outcome

    def abort(self, handle: Any) -> None:
        """Roll back what was prepared; do nothing where it is gone.

        Args:
            handle (Any): what `pre_commit` returned, or `list_prepared` listed.
        """
        label, database_id = self._read(handle)

        def abort(connection: PreparingConnection) -> None:
            self._check(connection, label, database_id)
            connection.abort_prepared(label)

        self._asked(abort)

    def list_prepared(self, prefix: str) -> Iterable[PreparedTransaction]:
        """Return what is prepared in this database, each with its age.

        Args:
            prefix (str): the beginning of their labels' texts.
        """

        def listed(connection: PreparingConnection) -> list[PreparedTransaction]:
            found = connection.listed(prefix)
            return [PreparedTransaction(label, [label, connection.database_id], age) for label, age in found]

        return self._asked(listed)

    def _read(self, handle: Any) -> tuple[TransactionLabel, str]:
        label, database_id = handle if isinstance(handle, (list, tuple)) and len(handle) == 2 else (None, None)
        read = TransactionLabel.read(label) if isinstance(label, str) else None
        if read is None or not isinstance(database_id, str):
            raise StoreMismatch(
                f"{shown(handle)} is no handle of {type(self).__name__}, which is a label and a database's id: another "
                "kind of sink has pre-committed it; declare the bolt as it was until its transaction is committed"
            )
        return read, database_id

    def _check(self, connection: PreparingConnection, label: TransactionLabel, database_id: str) -> None:
        if connection.database_id != database_id:
            raise StoreMismatch(
                f"transaction {label} was prepared in the database of id {database_id!r}, and {self.store} is that of "
                f"id {connection.database_id!r} (table stormline_xa says so): let the store lead to the database that "
                "it led to, until its transactions are committed"
            )

    def _asked(self, ask: Callable[[PreparingConnection], _T]) -> _T:
        """Ask on the connection that is kept; where that one is cut, on a new one: each question may be repeated."""
        kept, self._asks = self._asks, None
        if kept is not None:
            try:
                answer = ask(kept)
            except StoreUnavailable:
                kept.close()
            except BaseException:
                kept.close()
                raise
            else:
                self._asks = kept
                return answer
        connection = self._connected()
        try:
            answer = ask(connection)
        except BaseException:
            connection.close()
            raise
        self._asks = connection
        return answer

    def _forget_before(self, label: TransactionLabel) -> None:
        """Remove old rows of the ledger: whoever commits a transaction knows that those before it are recorded."""
        if label.txid - self._forgotten.get(label.scope, -FORGET_EVERY) < FORGET_EVERY:
            return
        self._forgotten[label.scope] = label.txid
        before = label.txid - KEPT_TXIDS
        if before <= 0:
            return
        try:
            self._asked(lambda connection: connection.forget(label.scope, before))
        except Exception:  # the transaction is committed, whatever becomes of old rows
            log.warning("old rows of the ledger of %s are not removed", self.store, exc_info=True)
