"""T1, T2: rows into PostgreSQL by two-phase commit: large batches against plain COPY, small ones against PREPARE."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any

from benchmarks.measuring.bare import BareProcesses
from benchmarks.measuring.bare_loads import BarePrepares, load
from benchmarks.measuring.bench import Bench, alternately
from benchmarks.measuring.settings import BATCH_TUPLES, CORES, PATIENT, WARM_UP_SMALL
from benchmarks.topologies.prepared import CREATE, loaded
from stormline.state import PostgreSQLStore

PENDING = 32
BATCHES = 64
PENDING_SMALL = 256
SMALL = 10
"""Rows of a small batch."""
COMMITS, BARE_COMMITS = 8 * PENDING_SMALL, 500
"""Small transactions a measurement."""


class LoadedTable:
    """The table that both sides write into, one after another."""

    def __init__(self, store: PostgreSQLStore) -> None:
        import psycopg

        self._db: Any = psycopg.connect(store.dsn, autocommit=True)
        self._db.execute(CREATE)

    def timed(self, run: Callable[[], float], rows: int) -> float:
        """Let the empty table be written; return the seconds that took, of which `run` tells; look at what is there."""
        self._db.execute("TRUNCATE loads")
        self._db.execute("CHECKPOINT")
        secs = run()
        found = self._db.execute("SELECT count(*) FROM loads").fetchone()
        assert found == (rows,), (found, rows)
        assert self._db.execute("SELECT count(*) FROM pg_prepared_xacts").fetchone() == (0,)
        return secs

    def close(self) -> None:
        """Let go of the connection."""
        self._db.close()


def run(bench: Bench) -> None:
    """Measure those of T1 and T2 that are asked for."""
    bench.say("starting postgresql")
    for key, measure in (("T1", _large), ("T2", _small)):
        if bench.recorder.wants(key):
            store = bench.lab.databases.postgresql()
            with closing(LoadedTable(store)) as table:
                measure(bench, store, table)
    bench.lab.databases.close()


def _large(bench: Bench, store: PostgreSQLStore, table: LoadedTable) -> None:
    batches = bench.amount(BATCHES)
    rows = batches * BATCH_TUPLES
    with (
        bench.lab.submit(lambda topology_id: loaded(topology_id, store, BATCH_TUPLES, CORES), PENDING, PATIENT) as ours,
        BareProcesses(load=partial(load, store.dsn)) as bare,
    ):

        def theirs() -> float:
            return table.timed(lambda: bare.run("load", batches, BATCH_TUPLES), rows)

        def mine() -> float:
            return table.timed(lambda: ours.run(batches), rows)

        bench.say("warming up")
        mine()
        theirs()
        for number in range(bench.repeats):
            secs = alternately(number, mine, theirs)
            bench.recorder.pair("T1", rows / secs[0], rows / secs[1], batches=batches, secs=secs)
    bench.recorder.note(
        "T1",
        f"pending {PENDING}, {batches} batches a measurement, {CORES} tasks; a table (bigint primary key, text, double "
        f"precision), fsync on; by hand {CORES} processes COPY and commit their halves, prepare nothing and wait for "
        "nobody",
    )


def _small(bench: Bench, store: PostgreSQLStore, table: LoadedTable) -> None:
    commits, alone = bench.amount(COMMITS), bench.amount(BARE_COMMITS)
    with (
        bench.lab.submit(lambda topology_id: loaded(topology_id, store, SMALL, 1), PENDING_SMALL, PATIENT) as ours,
        closing(BarePrepares(store.dsn, SMALL)) as bare,
    ):

        def theirs() -> float:
            return table.timed(lambda: bare.run(alone), alone * SMALL)

        def mine() -> float:
            return table.timed(lambda: ours.run(commits), commits * SMALL)

        bench.say("warming up")
        for _ in range(WARM_UP_SMALL // COMMITS):
            mine()
        theirs()
        for number in range(bench.repeats):
            secs = alternately(number, mine, theirs)
            bench.recorder.pair("T2", commits / secs[0], alone / secs[1], amounts=[commits, alone], secs=secs)
    bench.recorder.note(
        "T2",
        f"pending {PENDING_SMALL}, {SMALL} rows a transaction, fsync on; psycopg alone prepares and commits one after "
        "another on one connection, writes no ledger and records nothing",
    )
