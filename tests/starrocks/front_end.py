"""The front end: what it does itself with a request, and what it sends on to a back end [fe]."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.starrocks.back_end import Answer, BackEnd
from tests.starrocks.refusals import FAILED, Refused
from tests.starrocks.transactions import DONE, State, Transactions

_STATE = re.compile(r"/api/([^/]+)/get_load_state")
_CANCEL = re.compile(r"/api/([^/]+)/([^/]+)/_cancel")
_SQL = re.compile(r"/api/v1/catalogs/default_catalog/databases/([^/]+)/sql")
_RUNNING = re.compile(r"/transactions/([^/]+)/running")
_SELECT = re.compile(r"select \* from `?(\w+)`?;?", re.IGNORECASE)
SHOWN_MAX = 2000
"""How many transactions SHOW PROC lists at most [fe]."""


@dataclass(frozen=True)
class Request:
    """A request that an allowed user has made; names of headers in small letters."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""
    admin: bool = True


@dataclass(frozen=True)
class Redirect:
    """The back end that a request belongs to."""

    back_end: int


class FrontEnd:
    """The front end; `now` is an argument, and one call is made at a time.

    Args:
        transactions: what it has on disk.
        back_ends: those it sends requests to, in turn.
    """

    def __init__(self, transactions: Transactions, back_ends: list[BackEnd]) -> None:
        self._transactions = transactions
        self._back_ends = back_ends
        self._back_end_of: dict[str, int] = {}
        self._next = 0

    def restart(self) -> None:
        """Lose what is in memory: which back end has which label, and transactions that are not prepared."""
        self._back_end_of.clear()
        self._transactions.restart()

    def operation(self, request: Request) -> str:
        """Return what a request asks for, by the name that faults are injected by."""
        if request.path.startswith("/api/transaction/"):
            return request.path.rpartition("/")[2]
        if _STATE.fullmatch(request.path):
            return "get_load_state"
        if _CANCEL.fullmatch(request.path):
            return "cancel"
        if _SQL.fullmatch(request.path):
            return "sql"
        return request.path.rpartition("/")[2]

    def answer(self, request: Request, now: float) -> Answer | str | Redirect:
        """Do what is asked for; a text is sent as it is.

        Raises:
            Refused: it cannot be done.
            LookupError: there is no such page.
        """
        if request.path.startswith("/api/transaction/"):
            operation = request.path.rpartition("/")[2]
            for header, message in (("db", "No database selected."), ("label", "Empty label.")):
                if not request.headers.get(header, "").strip():
                    raise Refused(FAILED, message)
            self._transactions.tables(request.headers["db"])
            if request.headers.get("transaction_type", "").lower() == "multi":
                return self._of_many_tables(operation, request.headers, now)
            return self._transaction(operation, request.headers, now)
        if (found := _STATE.fullmatch(request.path)) and request.method == "GET":
            state, reason = self._transactions.state_of(found[1], _label(request))
            return {"state": state, "reason": reason, "status": "OK", "code": "0", "msg": "Success", "message": "OK"}
        if (found := _CANCEL.fullmatch(request.path)) and request.method == "POST":
            return self._cancel(found[1], _label(request), now)
        if (found := _SQL.fullmatch(request.path)) and request.method == "POST":
            return self._sql(found[1], request.body)
        if request.path == "/api/show_proc" and request.method == "GET":
            return self._show_proc(request)
        if request.path == "/api/health" and request.method == "GET":
            online = len(self._back_ends)
            return {"online_backend_num": online, "total_backend_num": online, "status": "OK"}
        raise LookupError(f"{request.method} {request.path}")

    # ------------------------------------------------------------------------------------------ one table

    def _transaction(self, operation: str, headers: Mapping[str, str], now: float) -> Answer | Redirect:
        database, label = headers["db"], headers["label"]
        if operation == "begin":
            if label not in self._back_end_of:
                self._back_end_of[label] = self._next
                self._next = (self._next + 1) % len(self._back_ends)
            return Redirect(self._back_end_of[label])
        if operation in ("load", "prepare"):
            return self._where(database, label)
        if operation == "commit":
            return self._commit(database, label, now)
        if operation == "rollback":
            return self._rollback(database, label, now)
        raise Refused(FAILED, f"Unknown transaction operation: {operation}")

    def _where(self, database: str, label: str) -> Redirect:
        if label not in self._back_end_of:
            found = self._transactions.latest(database, label)
            if found is None:
                raise Refused(
                    FAILED,
                    f"Can't find the transaction with db [{database}] and label[{label}]. The possible reasons: "
                    "1. FE leader is started or switched; 2. The transaction timeouts and is cleaned.",
                )
            self._back_end_of[label] = found.back_end
        return Redirect(self._back_end_of[label])

    def _commit(self, database: str, label: str, now: float) -> Answer | Redirect:
        txn = self._transactions.latest(database, label)
        if txn is None:
            raise Refused(FAILED, f"No transaction found by label {label}")
        answer = {"TxnId": txn.txn_id, "Label": label}
        if txn.state in DONE:
            return {**answer, "Message": f"Transaction {txn.txn_id} has already committed, label is {label}"}
        if txn.state is State.ABORTED:
            raise Refused(FAILED, f"Can not commit ABORTED transaction {txn.txn_id}, label is {label}")
        if txn.state is State.PREPARE:  # begin, load, commit is allowed: the back end does it
            return self._where(database, label)
        if not self._transactions.commit(txn, now):
            raise Refused(FAILED, "publish timeout", TxnId=txn.txn_id, Label=label, CommitAndPublishTimeMs=0)  # [txn]
        return answer

    def _rollback(self, database: str, label: str, now: float) -> Answer | Redirect:
        txn = self._transactions.latest(database, label)
        if txn is None:
            raise Refused(FAILED, f"No transaction found by label {label}")
        answer = {"TxnId": txn.txn_id, "Label": label}
        if txn.state is State.ABORTED:
            return {**answer, "Message": f"Transaction {txn.txn_id} has already aborted, label is {label}"}
        if txn.state in DONE:
            raise Refused(FAILED, f"Can not abort {txn.state} transaction {txn.txn_id}, label is {label}")
        if txn.state is State.PREPARE:
            return self._where(database, label)
        self._transactions.abort(txn, "User Aborted", now)
        return answer

    # ------------------------------------------------------------------------------------------ many tables

    def _of_many_tables(self, operation: str, headers: Mapping[str, str], now: float) -> Answer | Redirect:
        """Do what the header `transaction_type: multi` of version 4.0 asks for: there is no prepare [txn] [fe]."""
        database, label = headers["db"], headers["label"]
        if operation == "begin":
            txn = self._transactions.begin(database, label, now, None, multi=True)
            return {"Label": label, "TxnId": txn.txn_id, "BeginTxnTimeMs": 0}
        found = self._transactions.latest(database, label)
        if found is None or not found.multi:
            raise Refused(FAILED, f"stream load task {label} is not exist")
        back_end = self._back_ends[0]
        if operation == "load":
            table = headers.get("table", "")
            if table not in self._transactions.tables(database):
                raise Refused(FAILED, f"unknown table, table={table}")
            back_end.join(found, table, now)
            return Redirect(0)
        if operation == "commit":
            rows = {context.table: back_end.rows_of(context).rows for context in back_end.of_label(label)}
            self._transactions.prepare(found, rows, now, None)
            self._transactions.commit(found, now)
        elif operation == "rollback":
            self._transactions.abort(found, "User Aborted", now)
        else:
            raise Refused(FAILED, f"Unsupported operation: TXN_{operation.upper()}")
        back_end.forget(label)
        return {"TxnId": found.txn_id, "Label": label}

    # ------------------------------------------------------------------------------------------ other pages

    def _cancel(self, database: str, label: str, now: float) -> Answer:
        """Abort what is not prepared: what is prepared is not found by this [fe]."""
        txn = self._transactions.latest(database, label)
        if txn is None or txn.state is not State.PREPARE:
            what = "transaction" if txn is None else "running transaction"
            raise Refused(FAILED, f"{what} not found, label={label}")
        self._transactions.abort(txn, "user cancel", now)
        return {"status": "OK", "code": "0", "msg": "Success", "message": "OK"}

    def _show_proc(self, request: Request) -> str:
        if not request.admin:
            raise Refused(FAILED, "Access denied; you need (at least one of) the OPERATE privilege(s) on SYSTEM")
        path = request.query.get("path", "")
        if path == "/transactions":  # ids are names here
            return json.dumps([{"DbId": name, "DbName": name} for name in self._transactions.databases])
        found = _RUNNING.fullmatch(path)
        if found is None or found[1] not in self._transactions.databases:
            return "[]"
        rows = [
            {"TransactionId": str(txn.txn_id), "Label": txn.label, "TransactionStatus": txn.state.value}
            for txn in self._transactions.running(found[1])
        ]
        return json.dumps(rows[:SHOWN_MAX])

    def _sql(self, database: str, body: bytes) -> str:
        """Answer `SELECT * FROM table`, a JSON object a line [sql]."""
        found = _SELECT.fullmatch(str(json.loads(body)["query"]).strip())
        tables = self._transactions.tables(database)
        if found is None or found[1] not in tables:
            raise Refused(FAILED, "the emulator answers SELECT * FROM table, of tables that it has")
        table = tables[found[1]]
        meta = [{"name": column.name, "type": column.type} for column in table.columns]
        rows = table.rows()
        lines: list[dict[str, Any]] = [{"connectionId": 1}, {"meta": meta}, *({"data": list(row)} for row in rows)]
        return "\n".join(json.dumps(line) for line in [*lines, {"statistics": {"returnRows": len(rows)}}])


def _label(request: Request) -> str:
    if not request.query.get("label"):
        raise Refused(FAILED, "No label selected.")
    return request.query["label"]
