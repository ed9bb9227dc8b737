"""The front end's transactions: labels, states, time-outs, what is kept and what is forgotten.

Nothing here reads a clock, sleeps or knows HTTP: `now` is an argument, in seconds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tests.starrocks.refusals import FAILED, INTERNAL_ERROR, LABEL_ALREADY_EXISTS, Refused
from tests.starrocks.tables import Row, Table

LABEL = re.compile(r"[-\w]{1,128}", re.ASCII)


class State(StrEnum):
    """Where a transaction is; `get_load_state` says UNKNOWN where there is none [fe]."""

    PREPARE = "PREPARE"
    PREPARED = "PREPARED"
    COMMITTED = "COMMITTED"
    VISIBLE = "VISIBLE"
    ABORTED = "ABORTED"


UNKNOWN = "UNKNOWN"
FINAL = (State.VISIBLE, State.ABORTED)
DONE = (State.COMMITTED, State.VISIBLE)


@dataclass
class Limits:
    """The front end's configuration, by its names and defaults [conf]."""

    stream_load_default_timeout_second: float = 600
    prepared_transaction_default_timeout_second: float = 86_400
    # Of "frequent" loads, as stream loads are; label_keep_max_second, 3 days, is that of the others.
    streaming_label_keep_max_second: float = 43_200
    label_keep_max_num: int = 1000
    max_running_txn_num_per_db: int = 1000


@dataclass
class Transaction:
    """One transaction of a database, as the front end holds it."""

    txn_id: int
    database: str
    label: str
    begun: float
    timeout: float
    multi: bool = False
    back_end: int = 0
    state: State = State.PREPARE
    reason: str = ""
    prepared: float = 0
    prepared_timeout: float = 0
    finished: float = 0
    rows: dict[str, list[Row]] = field(default_factory=dict)


class Transactions:
    """The transactions of all databases, and what they have made visible in the tables.

    Args:
        databases: tables by database and name.
        limits: the configuration; it may be changed at any time.
    """

    def __init__(self, databases: Mapping[str, Mapping[str, Table]], limits: Limits) -> None:
        self.databases = databases
        self.limits = limits
        self.publishing = True
        """Where this is False, what is committed does not become visible, until it is True again and `publish` ran."""
        self._of: dict[str, list[Transaction]] = {name: [] for name in databases}
        self._last_id = 9000

    # ------------------------------------------------------------------------------------------ what there is

    def tables(self, database: str) -> Mapping[str, Table]:
        """Return a database's tables; it must exist."""
        if database not in self.databases:
            raise Refused(FAILED, f"Database[{database}] does not exist.")
        return self.databases[database]

    def latest(self, database: str, label: str) -> Transaction | None:
        """Return the transaction that a label stands for: the one not aborted, else the last one; None: no such."""
        self.tables(database)
        found = [one for one in self._of[database] if one.label == label]
        return next((one for one in found if one.state is not State.ABORTED), found[-1] if found else None)

    def labels(self, database: str) -> list[str]:
        """Return all labels that are not forgotten."""
        return list(dict.fromkeys(one.label for one in self._of[database]))

    def running(self, database: str) -> list[Transaction]:
        """Return what is not over, the newest first, as SHOW PROC '/transactions/<database>/running' does [proc]."""
        self.tables(database)
        return [one for one in reversed(self._of[database]) if one.state not in FINAL]

    def state_of(self, database: str, label: str) -> tuple[str, str]:
        """Return the state of a label and the reason it was aborted for, if so."""
        found = self.latest(database, label)
        return (UNKNOWN, "") if found is None else (found.state.value, found.reason)

    # ------------------------------------------------------------------------------------------ what is done

    def begin(self, database: str, label: str, now: float, timeout: float | None, multi: bool = False) -> Transaction:
        """Begin a transaction under a label that no running or finished one has; an aborted one's may come again [fe].

        Raises:
            Refused: the label is taken or is none, or too many transactions run in the database.
        """
        if not LABEL.fullmatch(label):
            raise Refused(FAILED, f"Incorrect label name '{label}'")
        found = self.latest(database, label)
        if found is not None and found.state is not State.ABORTED:
            raise Refused(
                LABEL_ALREADY_EXISTS,
                f"Label [{label}] has already been used.",
                ExistingJobStatus="FINISHED" if found.state in DONE else "RUNNING",
            )
        running, limit = len(self.running(database)), self.limits.max_running_txn_num_per_db
        if running >= limit:  # [SR 10991]
            raise Refused(FAILED, f"current running txns on db {database} is {running}, larger than limit {limit}")
        self._last_id += 1
        default = self.limits.stream_load_default_timeout_second  # [txn]
        begun = Transaction(self._last_id, database, label, now, default if timeout is None else timeout, multi)
        self._of[database].append(begun)
        return begun

    def prepare(self, txn: Transaction, rows: dict[str, list[Row]], now: float, timeout: float | None) -> None:
        """Make what was loaded durable; from here on only the front end knows it [fe]."""
        self._must_run(txn)
        if not any(rows.values()):
            # empty_load_as_error [fe]
            self.abort(txn, "all partitions have no load data", now)
            raise Refused(INTERNAL_ERROR, "all partitions have no load data")
        default = self.limits.prepared_transaction_default_timeout_second  # [txn]
        txn.prepared_timeout = default if timeout is None else timeout
        txn.rows, txn.prepared, txn.state = rows, now, State.PREPARED

    def commit(self, txn: Transaction, now: float) -> bool:
        """Commit what is prepared; return whether it is visible already, or will be later [fe]."""
        assert txn.state is State.PREPARED, txn
        txn.state = State.COMMITTED
        self.publish(now)
        return txn.state in FINAL

    def publish(self, now: float) -> None:
        """Make what is committed visible, in the order of commits."""
        for database, transactions in self._of.items():
            for txn in transactions:
                if self.publishing and txn.state is State.COMMITTED:
                    for table, rows in txn.rows.items():
                        self.databases[database][table].visible += rows
                    txn.rows, txn.state, txn.finished = {}, State.VISIBLE, now

    def abort(self, txn: Transaction, reason: str, now: float) -> None:
        """Abort a transaction that is not committed."""
        if txn.state in DONE:
            raise Refused(FAILED, f"transaction {txn.txn_id} is already {txn.state}, could not abort")
        if txn.state is not State.ABORTED:
            txn.rows, txn.state, txn.reason, txn.finished = {}, State.ABORTED, reason, now

    def _must_run(self, txn: Transaction) -> None:
        if txn.state is not State.PREPARE:
            raise Refused(INTERNAL_ERROR, f"transaction {txn.txn_id} is {txn.state}: {txn.reason}")

    # ------------------------------------------------------------------------------------------ what time does

    def pass_time(self, now: float) -> None:
        """Abort what is too old [txn], and forget what has ended long ago, or so many ends ago [conf] [fe]."""
        for database, transactions in self._of.items():
            for txn in transactions:
                if txn.state is State.PREPARE and now >= txn.begun + txn.timeout:
                    self.abort(txn, "timeout by txn manager", now)
                if txn.state is State.PREPARED and now >= txn.prepared + txn.prepared_timeout:
                    self.abort(txn, "prepared timeout by txn manager", now)
            ended = sorted((txn for txn in transactions if txn.state in FINAL), key=lambda txn: txn.finished)
            too_many = max(0, len(ended) - self.limits.label_keep_max_num)
            keep = self.limits.streaming_label_keep_max_second
            gone = {txn.txn_id for i, txn in enumerate(ended) if i < too_many or now >= txn.finished + keep}
            self._of[database] = [txn for txn in transactions if txn.txn_id not in gone]

    def restart(self) -> None:
        """Lose what is on no disk: a transaction is first written when it is prepared [fe]."""
        for database, transactions in self._of.items():
            self._of[database] = [txn for txn in transactions if txn.state is not State.PREPARE]
