"""Sums into PostgreSQL by two-phase commit: prepared on the executors, visible when the driver commits them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg

from stormline import CommitOutcome, TopologyContext, TransactionLabel, Tuple
from stormline.state import PostgreSQLStore
from stormline.state.xa import PostgresTwoPhaseSink
from stormline.topology.contracts import Conf
from tests.chaos import deaths
from tests.chaos.evidence import Entry, Evidence, Stored, Taken
from tests.chaos.ledger import Range, Token, insert_entry
from tests.chaos.numbers import Sums
from tests.chaos.results import Progress, TableResults
from tests.chaos.stores import TIMEOUT_SECS

MARKS = "marks"
"""A stream that brings each task something of each batch: who has got nothing of one prepares nothing."""

SERVER = {"max_connections": "200", "max_prepared_transactions": "200", "track_commit_timestamp": "on"}
"""What PostgreSQL needs: the place of rows among others says when they were written, not when they became visible."""

SCHEMA = """
CREATE TABLE sums (topology text, txid bigint, task int, key int, count bigint, total numeric, squares numeric)
"""


class PreparedSums(PostgresTwoPhaseSink):
    """Writes rows of ledger, ranges and sums; none is written twice, so no two transactions wait for one another."""

    def __init__(self, folder: Path, dsn: str) -> None:
        super().__init__(PostgreSQLStore(dsn, timeout_secs=TIMEOUT_SECS), write=_write)
        self.folder = folder
        self._last_txid = 0

    def open(self, conf: Conf, context: TopologyContext) -> None:
        self._who = context.topology_id, context.this_task_index

    def invoke(self, transaction: Any, tup: Tuple) -> None:
        transaction.places = range(5)  # of these rows, which are no tuple's, all is written
        transaction.rows.append((*self._who, transaction.label, tup.source_stream_id, tup.values[1:]))

    def pre_commit(self, transaction: Any) -> list[str] | None:
        deaths.meet(self.folder, deaths.PREPARING)
        handle = super().pre_commit(transaction)
        deaths.meet(self.folder, deaths.PREPARED)
        return handle

    def commit(self, handle: Any) -> CommitOutcome:
        label = TransactionLabel.read(handle[0])
        assert label is not None
        deaths.meet(self.folder, deaths.WITHIN if label.txid == self._last_txid else deaths.BEFORE)
        outcome = super().commit(handle)
        if label.txid == self._last_txid:
            deaths.meet(self.folder, deaths.AFTER)
        self._last_txid = label.txid
        return outcome


def _write(db: Any, rows: Sequence[Sequence[Any]]) -> None:
    """Write what one task has of one transaction."""
    topology, task, label, _, _ = rows[0]
    sums: defaultdict[int, Sums] = defaultdict(Sums)
    ranges: dict[int, Range] = {}
    for *_, stream, values in rows:
        if stream == "ranges":
            partition, *more = values
            range_ = Range(*more)
            ranges[partition] = ranges[partition].plus(range_) if partition in ranges else range_
        elif stream != MARKS:
            key, *more = values
            sums[key] = sums[key].plus(Sums(*more))
    insert_entry(db, topology, label.txid, task, label.epoch, label.attempt, sums)
    with db.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO sums VALUES (%s, %s, %s, %s, %s, %s, %s)",
            [(topology, label.txid, task, key, *part) for key, part in sums.items()],
        )
        cursor.executemany(
            "INSERT INTO ranges VALUES (%s, %s, %s, %s, %s, %s, %s)",
            [(topology, label.txid, task, partition, *range_) for partition, range_ in ranges.items()],
        )


class PreparedResults(TableResults):
    """What of that is visible, in the order in which it became so."""

    def look(self) -> Progress:
        with self._connection() as db:
            found = db.execute(
                "SELECT max(txid), sum(count) FROM ledger WHERE topology = %s GROUP BY task", (self._design.topology,)
            ).fetchall()
        last = [int(txid) for txid, _ in found]
        least = min(last) if len(last) == self._design.committers else 0
        return Progress(least, max(last, default=0), sum(int(count) for _, count in found))

    def prepared(self) -> list[str]:
        """Return what is prepared, and not ended."""
        with self._connection() as db:
            return [gid for (gid,) in db.execute("SELECT gid FROM pg_prepared_xacts")]

    def evidence(
        self, rows: int, source: Mapping[int, Sums], committed: int, stores: Mapping[str, Mapping[int, Sums]]
    ) -> Evidence:
        design = self._design
        of = (design.topology,)
        with psycopg.connect(self._dsn) as db:
            entries = [
                Entry(txid, task, epoch, attempt, Sums(int(count), int(total), int(squares)))
                for txid, task, epoch, attempt, count, total, squares in db.execute(
                    "SELECT txid, task, epoch, attempt, count, total, squares FROM ledger WHERE topology = %s"
                    " ORDER BY pg_xact_commit_timestamp(xmin), serial",
                    of,
                )
            ]
            taken = [
                Taken(*row)
                for row in db.execute(
                    "SELECT txid, partition, first, end_row, count FROM ranges WHERE topology = %s", of
                )
            ]
            state: dict[int, Stored] = {}
            for txid, task, key, count, total, squares in db.execute(
                "SELECT txid, task, key, count, total, squares FROM sums WHERE topology = %s ORDER BY txid", of
            ):
                before = state[key].sums if key in state else Sums()
                state[key] = Stored(task, before.plus(Sums(int(count), int(total), int(squares))), txid)
        fence = {entry.task: Token(entry.epoch, entry.txid, entry.attempt) for entry in entries}
        return Evidence(
            design.partitions, rows, design.committers, source, entries, taken, state, fence, committed, stores
        )
