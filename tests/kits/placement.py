"""Committers that keep their database in a SQLite file, so that they can finish in any process; and a ledger of it.

The store is fenced as users are told to: the token (epoch, txid, attempt) is checked and kept in the same database
transaction as the values. Beside it, every begin of `finish_batch` is noted, whatever becomes of it.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from stormline import BaseTransactionalBolt, Fields, ICommitter, TransactionAttempt, Tuple
from tests.kits.components import NO_FAULT, Fault, Trail

SCHEMA = """
    CREATE TABLE IF NOT EXISTS fence (component TEXT, task INTEGER, epoch INTEGER, txid INTEGER, attempt INTEGER,
        commit_id INTEGER, PRIMARY KEY (component, task));
    CREATE TABLE IF NOT EXISTS stored (component TEXT, task INTEGER, txid INTEGER, value);
    CREATE TABLE IF NOT EXISTS counts (word PRIMARY KEY, count INTEGER, prev INTEGER, txid INTEGER);
    CREATE TABLE IF NOT EXISTS begun (component TEXT, task INTEGER, epoch INTEGER, txid INTEGER, attempt INTEGER,
        pid INTEGER, at REAL);
    CREATE TABLE IF NOT EXISTS notes (txid INTEGER, component TEXT, pid INTEGER, note TEXT);
"""


class Begun(NamedTuple):
    """One begin of `finish_batch`."""

    component: str
    task: int
    epoch: int
    txid: int
    attempt: int
    pid: int
    at: float

    @property
    def token(self) -> tuple[str, int, int, int, int]:
        return self[:5]


class FencedStore:
    """A SQLite file that several processes write to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Do what is within in one transaction that no other one runs beside."""
        with closing(sqlite3.connect(self.path, timeout=30, isolation_level=None)) as db, db:
            db.executescript(SCHEMA)
            db.execute("BEGIN IMMEDIATE")
            yield db
            db.execute("COMMIT")

    def note_begin(self, context: Any, attempt: TransactionAttempt) -> None:
        """Note that user code has begun to commit."""
        row = (context.this_component_id, context.this_task_id, *_token(context, attempt), os.getpid(), time.time())
        with self.transaction() as db:
            db.execute("INSERT INTO begun VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def note(self, txid: int, component: str, note: str) -> None:
        """Keep a note."""
        with self.transaction() as db:
            db.execute("INSERT INTO notes VALUES (?, ?, ?, ?)", (txid, component, os.getpid(), note))

    def passes(self, db: sqlite3.Connection, context: Any, attempt: TransactionAttempt) -> bool:
        """Return whether this transaction is to be applied; turn away who comes with an older token."""
        who = (context.this_component_id, context.this_task_id)
        token = _token(context, attempt)
        query = "SELECT epoch, txid, attempt, commit_id FROM fence WHERE (component, task) = (?, ?)"
        stored = tuple(db.execute(query, who).fetchone() or (0, 0, 0, 0))
        commit_id = context.commit_id(attempt)
        if stored[:3] >= token or stored[1] > attempt.transaction_id:
            raise RuntimeError(f"{who} comes with token {token}, after {stored}")
        if stored[1] == attempt.transaction_id and stored[3] != commit_id:
            raise RuntimeError(f"{who} comes with token {token} and commit id {commit_id}, after {stored}")
        db.execute("INSERT OR REPLACE INTO fence VALUES (?, ?, ?, ?, ?, ?)", (*who, *token, commit_id))
        return stored[1] < attempt.transaction_id

    def add(self, context: Any, attempt: TransactionAttempt, values: Sequence[Any]) -> None:
        """Store the values of one task of one transaction, once."""
        with self.transaction() as db:
            if self.passes(db, context, attempt):
                who = (context.this_component_id, context.this_task_id, attempt.transaction_id)
                db.executemany(
                    "INSERT INTO stored VALUES (?, ?, ?, ?)",
                    [(*who, repr(v) if isinstance(v, tuple) else v) for v in values],
                )

    def rows(self, query: str, *parameters: Any) -> list[Any]:
        """Return what is stored."""
        if not self.path.exists():
            return []
        with self.transaction() as db:
            return db.execute(query, parameters).fetchall()

    def values(self, component: str = "store") -> list[Any]:
        return [value for (value,) in self.rows("SELECT value FROM stored WHERE component = ?", component)]

    def begun(self) -> list[Begun]:
        return [Begun(*row) for row in self.rows("SELECT * FROM begun ORDER BY rowid")]

    def notes(self) -> list[tuple[int, str, str]]:
        return self.rows("SELECT txid, component, note FROM notes ORDER BY rowid")

    def check_tokens(self) -> None:
        """See that no token reached user code twice, and that commits were in txid order."""
        begun = self.begun()
        twice = {token: count for token, count in Counter(one.token for one in begun).items() if count > 1}
        assert twice == {}
        txids = [one.txid for one in begun]
        assert txids == sorted(txids)


def _token(context: Any, attempt: TransactionAttempt) -> tuple[int, int, int]:
    return context.epoch, attempt.transaction_id, attempt.attempt_id


class Keep(BaseTransactionalBolt, ICommitter):
    """Stores the values of a batch, once a transaction, and passes their number on."""

    def __init__(self, path: Path, fault: Fault = NO_FAULT) -> None:
        self.path = path
        self.fault = fault

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "value"))

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        self.conf, self.context, self.collector, self.attempt = conf, context, collector, batch_id
        self.values: list[Any] = []
        self.fault.strike("prepare", batch_id)

    def execute(self, tup: Tuple) -> None:
        assert tup[0] == self.attempt
        self.fault.strike("execute", self.attempt)
        self.values.append(tup[1])

    def finish_batch(self) -> None:
        store = FencedStore(self.path)
        store.note_begin(self.context, self.attempt)
        self.fault.strike("before", self.attempt)
        store.add(self.context, self.attempt, self.values)
        self.collector.emit([self.attempt, len(self.values)])
        self.fault.strike("after", self.attempt)


class KeepWithLock(Keep):
    """Opens in `prepare` what cannot travel."""

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        super().prepare(conf, context, collector, batch_id)
        self.lock = threading.Lock()
        self.prepared_in = os.getpid()

    def finish_batch(self) -> None:
        assert self.prepared_in == os.getpid()
        with self.lock:
            super().finish_batch()


class KeepWhereKilled(Keep):
    """Ends its own process in the commit of one attempt, as the kernel ends one that takes too much memory."""

    def finish_batch(self) -> None:
        if self.fault.where == "process" and self.attempt == TransactionAttempt(self.fault.txid, self.fault.attempts):
            FencedStore(self.path).note_begin(self.context, self.attempt)
            os._exit(137)
        super().finish_batch()


class Notes(Trail):
    """A `Trail` that notes in a store."""

    def __init__(self, path: Path, name: str) -> None:
        super().__init__("", name)
        self.path = path

    def note(self, values: list[str]) -> None:
        FencedStore(self.path).note(self.attempt.transaction_id, self.name, ",".join(values))


class CommittingNotes(Notes, ICommitter):
    """`Notes` that are a committer."""


class GlobalCount(Keep):
    """Stores the sum of all batches so far, as storm-starter's UpdateGlobalCount."""

    def finish_batch(self) -> None:
        store = FencedStore(self.path)
        with store.transaction() as db:
            if store.passes(db, self.context, self.attempt):
                (before,) = db.execute("SELECT coalesce(max(value), 0) FROM stored").fetchone()
                row = (self.context.this_component_id, 0, self.attempt.transaction_id, before + sum(self.values))
                db.execute("INSERT INTO stored VALUES (?, ?, ?, ?)", row)


class WordCount(Keep):
    """Stores how often each word occurs, and emits (word, count, count before), as storm-starter's does."""

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("id", "key", "count", "prev-count"))

    def finish_batch(self) -> None:
        txid = self.attempt.transaction_id
        store = FencedStore(self.path)
        store.note_begin(self.context, self.attempt)
        with store.transaction() as db:
            for word, more in Counter(self.values).items():
                row = db.execute("SELECT count, prev, txid FROM counts WHERE word = ?", (word,)).fetchone()
                count, prev, stored = row or (None, None, 0)
                if stored < txid:
                    count, prev = (count or 0) + more, count
                    db.execute("INSERT OR REPLACE INTO counts VALUES (?, ?, ?, ?)", (word, count, prev, txid))
                self.collector.emit([self.attempt, word, count, prev])


class Buckets(Keep):
    """Stores the changes of each bucket."""

    def execute(self, tup: Tuple) -> None:
        self.values.append(f"{tup[1]}:{tup[2]:+}")
