"""One back end: what it holds of transactions that are not prepared, in its memory alone [be]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.starrocks.payload import Loaded, Parameters, loaded
from tests.starrocks.refusals import (
    ABORTED,
    INTERNAL_ERROR,
    INVALID_ARGUMENT,
    TXN_IN_PROCESSING,
    TXN_NOT_EXISTS,
    Refused,
)
from tests.starrocks.transactions import State, Transaction, Transactions

Answer = dict[str, Any]


@dataclass
class Context:
    """A transaction into one table, from its begin until it is prepared."""

    txn: Transaction
    table: str
    last_active: float
    idle_timeout: float | None = None
    parameters: Parameters | None = None
    parts: list[bytes] = field(default_factory=list)
    bytes_received: int = 0
    loads: int = 0
    busy: bool = False
    aborted: str = ""


class BackEnd:
    """A back end; `now` is an argument, and one call is made at a time.

    Args:
        transactions: the front end's, which it calls, as a real one does by RPC.
        number: which of the back ends it is.
        json_bytes_max: streaming_load_max_batch_size_mb, in bytes [load].
    """

    def __init__(self, transactions: Transactions, number: int = 0, json_bytes_max: int = 100 << 20) -> None:
        self._transactions = transactions
        self._number = number
        self._json_bytes_max = json_bytes_max
        self._contexts: dict[tuple[str, str], Context] = {}

    # ------------------------------------------------------------------------------------------ begin

    def begin(self, headers: Mapping[str, str], now: float) -> Answer:
        """Begin a transaction into one table."""
        database, table, label = headers["db"], headers.get("table", ""), headers["label"]
        if table not in self._transactions.tables(database):
            raise Refused(INTERNAL_ERROR, f"unknown table, table={table}")
        idle = _secs(headers, "idle_transaction_timeout")
        txn = self._transactions.begin(database, label, now, _secs(headers, "timeout"))
        txn.back_end = self._number
        self._contexts[label, ""] = Context(txn, table, now, idle)
        return {"Label": label, "TxnId": txn.txn_id, "BeginTxnTimeMs": 0}

    def join(self, txn: Transaction, table: str, now: float) -> None:
        """Take part in a transaction of many tables, which the front end has begun."""
        self._contexts.setdefault((txn.label, table), Context(txn, table, now))

    # ------------------------------------------------------------------------------------------ load

    def open_load(self, headers: Mapping[str, str], now: float) -> Context:
        """Look at the headers of a load, and keep the label for it until `load`, which has the body.

        Raises:
            Refused: there is no such transaction here, it is another one's database or table, or it is being worked on.
        """
        context = self._context(headers["label"], headers.get("table", ""))
        self._check_database(context, headers, "Request database {} not equal transaction database {}")
        if context.table != headers.get("table"):
            raise Refused(
                INVALID_ARGUMENT,
                f"Request table {headers.get('table', '')} not equal transaction table {context.table}",
            )
        self._take(context)
        context.last_active = now
        try:
            if context.aborted:
                raise Refused(ABORTED, "current transaction is aborted")
            given = Parameters.of(headers)
            if context.parameters is not None and context.parameters != given:  # [txn]
                raise Refused(INTERNAL_ERROR, "load request not equal last.")
            context.parameters = given
        except Refused as refused:
            self._fail(context, refused, now)
            context.busy = False
            raise
        return context

    def load(self, context: Context, headers: Mapping[str, str], body: bytes | None, now: float) -> Answer:
        """Take the body of a load; None: it broke off."""
        context.busy = False
        context.last_active = now
        assert context.parameters is not None, "open_load comes first"
        try:
            if context.aborted or body is None:
                raise Refused(ABORTED, "current transaction is aborted")
            json_size = headers.get("ignore_json_size", "").lower() != "true" and context.parameters.format == "json"
            if json_size and len(body) > self._json_bytes_max:
                raise Refused(
                    INTERNAL_ERROR,
                    f"The size of this batch exceed the max size [{self._json_bytes_max}] of json type data "
                    f"data [ {len(body)} ]. Set ignore_json_size to skip check",
                )
            part = context.parameters.decompressed(body)
            done = self._read(context, [part])
        except Refused as refused:
            self._fail(context, refused, now)
            raise
        context.parts.append(part)
        context.bytes_received += len(body)
        context.loads += 1
        return {
            "TxnId": context.txn.txn_id,
            "Seq": context.loads - 1,
            "Label": context.txn.label,
            **_counts(done, len(body)),
        }

    # ------------------------------------------------------------------------------------------ prepare, commit

    def finish(self, headers: Mapping[str, str], now: float, commit: bool) -> Answer:
        """Prepare a transaction, or commit one that has not been prepared.

        Raises:
            Refused: it is not here, it is being worked on, nothing was loaded, too many rows do not fit; all but the
                first two abort it.
        """
        context = self._context(headers["label"])
        self._check_database(context, headers, "request db {} transaction db {} not match")
        timeout = _secs(headers, "prepared_timeout")
        if timeout == 0:
            raise Refused(INVALID_ARGUMENT, "Invalid prepared_timeout: 0")
        self._take(context)
        try:
            done = self._prepare(context, now, timeout)
        except Refused as refused:
            self._fail(context, refused, now)
            raise
        finally:
            context.busy = False
        del self._contexts[context.txn.label, ""]
        counts = _counts(done, context.bytes_received)
        answer = {"TxnId": context.txn.txn_id, "Label": context.txn.label, **counts, "WriteDataTimeMs": 0}
        if commit and not self._transactions.commit(context.txn, now):
            raise Refused("PUBLISH_TIMEOUT", "publish timeout", CommitAndPublishTimeMs=0)
        return {**answer, "CommitAndPublishTimeMs": 0}

    def _prepare(self, context: Context, now: float, timeout: float | None) -> Loaded:
        if context.aborted:
            raise Refused(ABORTED, "transaction is aborted")
        if not context.parts:
            raise Refused(INTERNAL_ERROR, f"transaction {context.txn.txn_id} hasn't send any data yet")
        done = self.rows_of(context)
        self._transactions.prepare(context.txn, {context.table: done.rows}, now, timeout)
        return done

    def rows_of(self, context: Context) -> Loaded:
        """Return the rows of all loads, unless too many do not fit."""
        assert context.parameters is not None, "what has parts has parameters"
        done = self._read(context, context.parts)
        if done.filtered > done.total * context.parameters.max_filter_ratio:
            raise Refused(
                INTERNAL_ERROR, f"too many filtered rows: {done.why}", ErrorURL="http://127.0.0.1/api/_load_error_log"
            )
        return done

    def _read(self, context: Context, parts: list[bytes]) -> Loaded:
        assert context.parameters is not None, "what has parts has parameters"
        return loaded(context.parameters, parts, self._transactions.tables(context.txn.database)[context.table])

    # ------------------------------------------------------------------------------------------ rollback

    def rollback(self, headers: Mapping[str, str], now: float) -> Answer:
        """Roll a transaction back that is not prepared, also while it is being worked on."""
        context = self._context(headers["label"])
        self._check_database(context, headers, "request db {} transaction db {} not match")
        context.aborted = "transaction is aborted by user."
        self._transactions.abort(context.txn, "User Aborted", now)
        self._contexts.pop((context.txn.label, context.table if context.txn.multi else ""), None)
        return {"Label": context.txn.label}

    # ------------------------------------------------------------------------------------------ time and death

    def pass_time(self, now: float) -> None:
        """Roll back what is idle [txn], and forget what the front end has aborted."""
        for key, context in list(self._contexts.items()):
            idle = context.idle_timeout
            if idle is not None and now >= context.last_active + idle and context.txn.state is State.PREPARE:
                self._transactions.abort(context.txn, "idle transaction timeout", now)
            if context.txn.state is not State.PREPARE:
                context.aborted = context.aborted or context.txn.reason or "transaction is aborted"
                if not context.busy:
                    del self._contexts[key]

    def restart(self) -> None:
        """Lose all that is in memory."""
        self._contexts.clear()

    def of_label(self, label: str) -> list[Context]:
        """Return what is here of a transaction of many tables."""
        return [context for (held, _), context in self._contexts.items() if held == label]

    def forget(self, label: str) -> None:
        """Forget a transaction of many tables, which the front end has ended."""
        self._contexts = {key: context for key, context in self._contexts.items() if key[0] != label}

    # ------------------------------------------------------------------------------------------ helpers

    def _context(self, label: str, table: str = "") -> Context:
        context = self._contexts.get((label, "")) or self._contexts.get((label, table))
        if context is None:
            raise Refused(TXN_NOT_EXISTS, f"transaction with label {label} not exists")
        return context

    def _check_database(self, context: Context, headers: Mapping[str, str], text: str) -> None:
        if context.txn.database != headers["db"]:
            raise Refused(INVALID_ARGUMENT, text.format(headers["db"], context.txn.database))

    def _take(self, context: Context) -> None:
        if context.busy:
            label = context.txn.label
            raise Refused(TXN_IN_PROCESSING, f"transaction {label} is in processing", Label=label)
        context.busy = True

    def _fail(self, context: Context, refused: Refused, now: float) -> None:
        """Roll back what failed [txn]; later calls find it aborted, or not at all."""
        context.aborted = refused.message
        if context.txn.state is State.PREPARE:
            self._transactions.abort(context.txn, refused.message, now)
        if context.txn.state is State.ABORTED and not context.txn.multi:
            self._contexts.pop((context.txn.label, ""), None)


def _secs(headers: Mapping[str, str], name: str) -> float | None:
    if not headers.get(name):
        return None
    if not headers[name].isdigit():
        raise Refused(INVALID_ARGUMENT, f"Invalid {name}: {headers[name]}")
    return float(headers[name])


def _counts(done: Loaded, received: int) -> Answer:
    return {
        "NumberTotalRows": done.total,
        "NumberLoadedRows": len(done.rows),
        "NumberFilteredRows": done.filtered,
        "NumberUnselectedRows": 0,
        "LoadBytes": received,
        "LoadTimeMs": 0,
        "StreamLoadPutTimeMs": 0,
        "ReceivedDataTimeMs": 0,
    }
