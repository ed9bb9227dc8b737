"""The ledger: committed sums in PostgreSQL, behind a fence row that each commit locks, checks and moves on.

No constraint keeps a wrong row out: what a broken engine would write twice has to be there for the checker to see.
"""

from __future__ import annotations

import contextlib
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import NamedTuple

import psycopg

from stormline import FailedException
from tests.chaos.numbers import Sums

SCHEMA = """
CREATE TABLE fence (
    topology text, task int, epoch bigint, txid bigint, attempt bigint, commit_id bigint DEFAULT 0,
    PRIMARY KEY (topology, task)
);
CREATE TABLE state (
    topology text, key int, task int, count bigint, total numeric, squares numeric, txid bigint,
    PRIMARY KEY (topology, key)
);
CREATE TABLE ledger (
    serial bigserial, topology text, txid bigint, task int, epoch bigint, attempt bigint,
    count bigint, total numeric, squares numeric, step bigint DEFAULT txid_current()
);
CREATE TABLE ranges (topology text, txid bigint, task int, partition int, first bigint, end_row bigint, count bigint);
CREATE TABLE refusals (topology text, task int, epoch bigint, txid bigint, attempt bigint, why text);
CREATE TABLE skips (topology text, task int, epoch bigint, txid bigint, attempt bigint);
"""

MOVE_FENCE = "UPDATE fence SET (epoch, txid, attempt, commit_id) = (%s, %s, %s, %s) WHERE topology = %s AND task = %s"

ADD = """
INSERT INTO state AS s SELECT %s, key, %s, count, total, squares, %s
    FROM unnest(%s::int[], %s::bigint[], %s::numeric[], %s::numeric[]) AS t (key, count, total, squares)
ON CONFLICT (topology, key) DO UPDATE SET count = s.count + excluded.count, total = s.total + excluded.total,
    squares = mod(s.squares + excluded.squares, 2305843009213693952), txid = excluded.txid
"""

CONNECT_SECS = 5


class Token(NamedTuple):
    """Who commits: in the order in which commits are allowed."""

    epoch: int
    txid: int
    attempt: int


class Range(NamedTuple):
    """Rows [first, end) of a partition, of which `count` arrived."""

    first: int
    end: int
    count: int  # type: ignore[assignment]  # hides a method of tuples, which nobody calls

    def plus(self, other: Range) -> Range:
        """Return both together."""
        return Range(min(self.first, other.first), max(self.end, other.end), self.count + other.count)


class Refused(Exception):
    """The fence has seen a newer token: whoever comes now was replaced."""


class OutOfOrder(Exception):
    """The fence has not seen the transaction before this one, or this one under another commit id."""


_idle: defaultdict[str, list[psycopg.Connection]] = defaultdict(list)
_lock = threading.Lock()


def insert_entry(
    db: psycopg.Connection, topology: str, txid: int, task: int, epoch: int, attempt: int, sums: Mapping[int, Sums]
) -> None:
    """Insert the row that says what one task has stored of one transaction."""
    whole = Sums()
    for part in sums.values():
        whole = whole.plus(part)
    db.execute(
        "INSERT INTO ledger (topology, txid, task, epoch, attempt, count, total, squares)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
        (topology, txid, task, epoch, attempt, *whole),
    )


class Ledger:
    """One topology's part of the database."""

    def __init__(self, dsn: str, topology: str) -> None:
        self._dsn = dsn
        self._topology = topology

    def add(
        self,
        token: Token,
        task: int,
        sums: Mapping[int, Sums],
        ranges: Mapping[int, Range],
        within: Callable[[], None] = lambda: None,
        *,
        commit_id: int,
    ) -> None:
        """Add the sums of one task of one transaction, unless they are there; all of it or nothing.

        Raises:
            FailedException: the database did not answer: nobody knows whether it is there now.
            Refused: a newer token has been here.
            OutOfOrder: the transaction before is missing, or this one is there under another commit id.
        """
        try:
            with _lock:
                db = _idle[self._dsn].pop() if _idle[self._dsn] else None
            db = db or psycopg.connect(self._dsn, connect_timeout=CONNECT_SECS)
            try:
                with db.transaction():
                    if self._pass_fence(db, token, task, commit_id):
                        self._write(db, token, task, sums, ranges)
                    else:
                        db.execute("INSERT INTO skips VALUES (%s, %s, %s, %s, %s)", (self._topology, task, *token))
                    within()
            except BaseException:
                db.close()
                raise
            with _lock:
                _idle[self._dsn].append(db)
        except Refused as refused:
            self._note_refusal(token, task, refused)
            raise
        except psycopg.Error as error:
            raise FailedException(f"PostgreSQL: {type(error).__name__}: {error}") from error

    def _pass_fence(self, db: psycopg.Connection, token: Token, task: int, commit_id: int) -> bool:
        """Return whether this transaction is to be applied, and put its token in the fence."""
        row = db.execute(
            "SELECT commit_id, epoch, txid, attempt FROM fence WHERE topology = %s AND task = %s FOR UPDATE",
            (self._topology, task),
        ).fetchone()
        assert row is not None, f"no fence for task {task} of {self._topology}"
        under, *before = row
        stored = Token(*before)
        if stored.txid > token.txid or stored >= token:
            raise Refused(f"task {task} comes with {tuple(token)}, after {tuple(stored)}")
        if stored.txid < token.txid - 1 or (stored.txid == token.txid and under != commit_id):
            raise OutOfOrder(f"task {task} comes with {tuple(token)}, right after {tuple(stored)}")
        db.execute(MOVE_FENCE, (*token, commit_id, self._topology, task))
        return stored.txid < token.txid

    def write_unfenced(
        self,
        db: psycopg.Connection,
        token: Token,
        task: int,
        sums: Mapping[int, Sums],
        ranges: Mapping[int, Range],
        *,
        commit_id: int,
    ) -> None:
        """Write what `add` does, in a transaction of somebody who has seen to it that it comes once, and in order."""
        db.execute(MOVE_FENCE, (*token, commit_id, self._topology, task))
        self._write(db, token, task, sums, ranges)

    def _write(
        self, db: psycopg.Connection, token: Token, task: int, sums: Mapping[int, Sums], ranges: Mapping[int, Range]
    ) -> None:
        keys = sorted(sums)
        columns = [[sums[key][i] for key in keys] for i in range(3)]
        db.execute(ADD, (self._topology, task, token.txid, keys, *columns))
        insert_entry(db, self._topology, token.txid, task, token.epoch, token.attempt, sums)
        for partition, (first, end, count) in ranges.items():
            db.execute(
                "INSERT INTO ranges VALUES (%s, %s, %s, %s, %s, %s, %s)",
                (self._topology, token.txid, task, partition, first, end, count),
            )

    def _note_refusal(self, token: Token, task: int, refused: Refused) -> None:
        with contextlib.suppress(psycopg.Error), psycopg.connect(self._dsn, connect_timeout=CONNECT_SECS) as db:
            db.execute(
                "INSERT INTO refusals VALUES (%s, %s, %s, %s, %s, %s)", (self._topology, task, *token, str(refused))
            )
