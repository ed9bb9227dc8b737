"""StreamLoadSink: rows into StarRocks tables by Stream Load's transactions, prepared on the executors."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stormline.state.errors import StoreUnavailable
from stormline.state.starrocks.errors import InvalidStarRocks, RowUnwritable, StarRocksRefused
from stormline.state.starrocks.rows import CsvRows, Rows
from stormline.state.starrocks.server import StarRocks
from stormline.topology.component import Conf
from stormline.topology.context import TopologyContext
from stormline.topology.fields import Fields
from stormline.topology.transaction_label import TransactionLabel
from stormline.topology.tuples import Tuple
from stormline.topology.two_phase_commit import CommitOutcome, PreparedTransaction, TwoPhaseCommitSink

if TYPE_CHECKING:
    import pyarrow

    from stormline.state.starrocks.client import StreamLoadClient

log = logging.getLogger("stormline")

FLUSH_BYTES = 16 << 20
TABLES_MAX = 1000
"""In one transaction of the topology: a table's number stands behind the label, which leaves room for no more."""
_NAME = re.compile(r"\w+", re.ASCII)

Layout = tuple[Sequence[int], int | None, Sequence[str]]


@dataclass
class TableLoad:
    """What is loaded into one table: a transaction of StarRocks', which has one table."""

    label: str
    table: str
    columns: Sequence[str]
    waiting: list[bytes] = field(default_factory=list)
    bytes_waiting: int = 0
    rows: int = 0
    begun: bool = False


@dataclass
class LoadTransaction:
    """One transaction of the topology as one task writes it: a load for each table."""

    label: TransactionLabel
    loads: dict[str, TableLoad] = field(default_factory=dict)

    def of(self, table: str, columns: Sequence[str]) -> TableLoad:
        """Return the load of a table."""
        load = self.loads.get(table)
        if load is None:
            if len(self.loads) == TABLES_MAX:
                raise StarRocksRefused(
                    f"transaction {self.label} writes into {TABLES_MAX} tables and {table!r}, each a transaction of "
                    "StarRocks'; write into fewer tables, or group the tuples by table"
                )
            load = self.loads[table] = TableLoad(f"{self.label.text}-{len(self.loads)}", table, columns)
        if load.columns is not columns and list(load.columns) != list(columns):
            raise InvalidStarRocks(
                f"table {table!r} is given the columns {list(load.columns)}, and {list(columns)} by another stream; "
                "all loads of a transaction must have the same: name them, fields=[…]"
            )
        return load


class StreamLoadSink(TwoPhaseCommitSink):
    """Tables of StarRocks, into which rows are loaded while batches are processed, and visible at the commit.

    See `StreamLoadBolt` for what it is declared with.
    """

    def __init__(
        self,
        server: StarRocks,
        table: str = "",
        *,
        table_field: str | None = None,
        fields: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        rows: Rows | None = None,
        flush_bytes: int = FLUSH_BYTES,
    ) -> None:
        if not isinstance(server, StarRocks):
            raise InvalidStarRocks(
                f"server is {server!r:.80}, expected StarRocks('starrocks://user@host:8030/database')"
            )
        if bool(table) == (table_field is not None) or not isinstance(table, str):
            raise InvalidStarRocks(
                f"table is {table!r} and table_field {table_field!r}, expected one of them: the name of a table, or "
                "the field that says it"
            )
        for name, names in (("fields", fields), ("columns", columns)):
            if names is not None and (isinstance(names, str) or not names or not all(map(_named, names))):
                raise InvalidStarRocks(f"{name} is {names!r}, expected names in a list, of letters, digits and _")
        if fields is not None and columns is not None and len(fields) != len(columns):
            raise InvalidStarRocks(f"{len(fields)} fields are to be written into {len(columns)} columns")
        if rows is not None and not isinstance(rows, Rows):
            raise InvalidStarRocks(f"rows is {rows!r:.80}, expected CsvRows(…) or JsonRows(…)")
        if type(flush_bytes) is not int or flush_bytes < 1:
            raise InvalidStarRocks(f"flush_bytes is {flush_bytes!r}, expected a number of bytes, at least 1")
        self.server = server
        self.table = table
        self.table_field = table_field
        self.fields = None if fields is None else tuple(fields)
        self.columns = None if columns is None else tuple(columns)
        self.rows = CsvRows() if rows is None else rows
        self.flush_bytes = flush_bytes
        self.prepared_limit_secs = float(server.prepared_timeout_secs)
        self._may_filter = "max_filter_ratio" in {name.lower() for name in self.rows.parameters}
        self._client: StreamLoadClient | None = None
        self._known: tuple[Any, Layout] | None = None
        self._told = False

    def __str__(self) -> str:
        return f"{self.server}/{self.table or f'<{self.table_field}>'}"

    # ------------------------------------------------------------------------------------ in each process

    def open(self, conf: Conf, context: TopologyContext) -> None:
        """Read the password, and check the fields.

        Args:
            conf (Conf): the configuration as the bolt has it.
            context (TopologyContext): that of the task.
        """
        self._client = self.server.open_client()
        for source in context.this_sources:
            self._layout(context.component_output_fields(source)[1:])

    @property
    def client(self) -> StreamLoadClient:
        """What speaks with the front ends; there is one where the sink was opened."""
        assert self._client is not None, "open comes first"
        return self._client

    # ------------------------------------------------------------------------------------ on the executors

    def begin_transaction(self, label: TransactionLabel) -> LoadTransaction:
        """Begin nothing yet: StarRocks' transactions begin with their first load.

        Args:
            label (TransactionLabel): the name of the transaction.
        """
        return LoadTransaction(label)

    def invoke(self, transaction: LoadTransaction, tup: Tuple) -> None:
        """Keep one tuple as a row; load what waits where that is enough.

        Args:
            transaction (LoadTransaction): what `begin_transaction` returned.
            tup (Tuple): what has arrived.
        """
        known = self._known
        if known is None or known[0] is not tup.fields:
            known = self._known = tup.fields, self._layout(tup.fields[1:])
        positions, table_at, columns = known[1]
        values = tup.values
        table = self.table if table_at is None else self._table_of(values[table_at + 1])
        self._keep(transaction, table, columns, [values[position + 1] for position in positions])

    def invoke_batch(self, transaction: LoadTransaction, batch: pyarrow.RecordBatch) -> None:
        """Keep the rows of a record batch; load what waits where that is enough.

        Args:
            transaction (LoadTransaction): what `begin_transaction` returned.
            batch (pyarrow.RecordBatch): what has arrived.
        """
        positions, table_at, columns = self._layout(batch.schema.names)
        lists = [batch.column(position).to_pylist() for position in positions]
        tables = None if table_at is None else batch.column(table_at).to_pylist()
        for number, row in enumerate(zip(*lists, strict=True)):
            table = self.table if tables is None else self._table_of(tables[number])
            self._keep(transaction, table, columns, row)

    def _layout(self, names: Sequence[str]) -> Layout:
        """Return where, among the fields behind the attempt, the columns' values are, and the table's name."""
        fields = Fields(*names)
        taken = self.fields or [name for name in names if name != self.table_field]
        columns = self.columns or tuple(taken)
        if len(columns) != len(taken) or not all(map(_named, columns)):
            raise InvalidStarRocks(
                f"{self} has the columns {list(columns)} for the fields {list(taken)}, expected as many, with names of "
                "letters, digits and _; say which: fields=[…], columns=[…]"
            )
        table_at = None if self.table_field is None else fields.field_index(self.table_field)
        return [fields.field_index(name) for name in taken], table_at, columns

    def _table_of(self, value: Any) -> str:
        if not _named(value):
            raise RowUnwritable(f"field {self.table_field!r} holds {value!r:.80}, expected the name of a table")
        return str(value)

    def _keep(self, transaction: LoadTransaction, table: str, columns: Sequence[str], row: Sequence[Any]) -> None:
        load = transaction.of(table, columns)
        data = self.rows.encode(columns, row)
        load.waiting.append(data)
        load.bytes_waiting += len(data)
        load.rows += 1
        if load.bytes_waiting >= self.flush_bytes:
            self._flush(load)

    def _flush(self, load: TableLoad) -> None:
        if not load.begun:
            load.begun = True  # also where the answer gets lost
            self.client.begin(load.label, load.table)
        self.client.load(load.label, load.table, self.rows.body(load.waiting), self.rows.headers(load.columns))
        load.waiting, load.bytes_waiting = [], 0

    def pre_commit(self, transaction: LoadTransaction) -> list[str] | None:
        """Load what waits, and prepare; return the labels, or None where nothing was written.

        Args:
            transaction (LoadTransaction): what `begin_transaction` returned.
        """
        for load in transaction.loads.values():
            if load.waiting:
                self._flush(load)
        for load in transaction.loads.values():
            counted = self.client.prepare(load.label)
            filtered = counted.filtered if self._may_filter else 0
            if counted.loaded + filtered != load.rows:
                raise StoreUnavailable(
                    f"{self.server}: {load.label!r} has {counted.loaded} rows of table {load.table!r}, and "
                    f"{counted.filtered} that did not fit, expected {load.rows}; it is rolled back, and replayed"
                )
        return [load.label for load in transaction.loads.values()] or None

    def roll_back(self, transaction: LoadTransaction) -> None:
        """Drop what was begun; what cannot be dropped now ends by its time-outs, or by the sweep.

        Args:
            transaction (LoadTransaction): what `begin_transaction` returned.
        """
        for load in transaction.loads.values():
            if load.begun:
                try:
                    self.client.rollback(load.label, load.table)
                except StoreUnavailable as error:
                    log.warning("%s", error)

    # ------------------------------------------------------------------------------------ in the driver

    def commit(self, handle: list[str]) -> CommitOutcome:
        """Make the rows visible, table by table.

        Args:
            handle (list[str]): what `pre_commit` returned.
        """
        outcomes = {self.client.commit(label) for label in handle}
        for outcome in (CommitOutcome.LOST, CommitOutcome.RETRY, CommitOutcome.DONE):
            if outcome in outcomes:
                return outcome
        return CommitOutcome.ALREADY

    def abort(self, handle: list[str]) -> None:
        """Drop what was prepared.

        Args:
            handle (list[str]): what `pre_commit` returned, or `list_prepared` listed.
        """
        for label in handle:
            self.client.rollback(label)

    def list_prepared(self, prefix: str) -> Iterable[PreparedTransaction] | None:
        """Return what is begun or prepared, as SHOW PROC shows it; None where this user may not see that.

        Args:
            prefix (str): the beginning of the labels' texts.
        """
        running = self.client.running(prefix)
        if running is None:
            if not self._told:
                self._told = True
                log.warning(
                    "%s: user %r may not see what runs (show_proc, which wants cluster_admin): what a killed process "
                    "has prepared, and nobody has decided, stays for up to %d s",
                    self.server,
                    self.server.user,
                    self.server.prepared_timeout_secs,
                )
            return None
        found: dict[str, list[str]] = {}
        for label, _ in running:
            text = label.rpartition("-")[0]
            if TransactionLabel.read(text) is not None:
                found.setdefault(text, []).append(label)
        return [PreparedTransaction(text, sorted(labels, key=_number)) for text, labels in found.items()]


def _named(name: Any) -> bool:
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def _number(label: str) -> int:
    return int(label.rpartition("-")[2])
