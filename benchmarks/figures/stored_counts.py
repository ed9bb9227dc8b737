"""S1, S2: committed transactions a second of GlobalCount in small batches into a database, its syncs on."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.figures.small_batches import NODE, SETS, VALUE, sets
from benchmarks.measuring.bench import Bench, alternately
from benchmarks.measuring.settings import PENDING_SMALL, WARM_UP_SMALL
from benchmarks.topologies.stored import stored_global_count, total
from stormline.state import PostgreSQLStore, Store

BATCHES = 8 * PENDING_SMALL
BARE_COMMITS = 2_000
GROUP_MAX = "topology.commit.group.max"
BATCH_TUPLES = 9


class BareLoop:
    """psycopg alone: value, txid and fence in one statement, which is a transaction of its own: the fastest way."""

    def __init__(self, store: PostgreSQLStore) -> None:
        import psycopg

        self._db: Any = psycopg.connect(store.dsn, autocommit=True)
        self._txid = 0
        self._db.execute("CREATE TABLE bare_fence (topology text PRIMARY KEY, txid bigint NOT NULL)")
        self._db.execute("CREATE TABLE bare (name text PRIMARY KEY, count bigint NOT NULL, txid bigint NOT NULL)")
        self._db.execute("INSERT INTO bare_fence VALUES ('bare', 0)")
        self._db.execute("INSERT INTO bare VALUES ('tuples', 0, 0)")

    def run(self, commits: int) -> float:
        """Commit transactions one after another; return the seconds it took."""
        begun = time.perf_counter()
        for _ in range(commits):
            self._txid += 1
            stored = self._db.execute(
                "WITH fence AS (UPDATE bare_fence SET txid = %(txid)s "
                "WHERE topology = 'bare' AND txid = %(txid)s - 1 RETURNING txid) "
                "UPDATE bare SET count = count + %(count)s, txid = fence.txid FROM fence WHERE name = 'tuples'",
                {"txid": self._txid, "count": BATCH_TUPLES},
            )
            assert stored.rowcount == 1
        return time.perf_counter() - begun

    def close(self) -> None:
        """Check what is stored, and let go of the connection."""
        assert self._db.execute("SELECT count, txid FROM bare").fetchone() == (BATCH_TUPLES * self._txid, self._txid)
        self._db.close()


def run(bench: Bench) -> None:
    """Measure those of S1 and S2 that are asked for."""
    if bench.recorder.wants("S1a"):
        _into_sqlite(bench)
    if bench.recorder.wants("S2"):
        _into_postgresql(bench)
    bench.lab.databases.close()


def _submit(bench: Bench, store: Store, config: dict[str, Any] | None = None) -> Any:
    return bench.lab.submit(lambda topology_id: stored_global_count(topology_id, store), PENDING_SMALL, config)


def _into_sqlite(bench: Bench) -> None:
    batches, number_of_sets = bench.amount(BATCHES), bench.amount(SETS)
    store, alone = bench.lab.databases.sqlite(), bench.lab.databases.sqlite()
    with (
        _submit(bench, store) as stream,
        _submit(bench, alone, {GROUP_MAX: 1}) as one_by_one,
        bench.lab.zookeeper(stream) as client,
    ):
        client.create(NODE, VALUE)
        bench.say("warming up")
        stream.run(bench.amount(WARM_UP_SMALL))
        one_by_one.run(2 * PENDING_SMALL)
        sets(client, number_of_sets)
        for number in range(bench.repeats):
            ours, theirs, single = alternately(
                number,
                lambda: stream.run(batches),
                lambda: sets(client, number_of_sets),
                lambda: one_by_one.run(batches // 2),
            )
            rate = batches / ours
            bench.recorder.pair("S1a", rate, number_of_sets / theirs, amounts=[batches, number_of_sets])
            bench.recorder.pair("S1b", rate, batches // 2 / single, amounts=[batches, batches // 2])
        for each, held in ((stream, store), (one_by_one, alone)):
            assert total(held).map.items() == {"tuples": each.gate.begun * BATCH_TUPLES}
        client.delete(NODE)
    bench.recorder.note(
        "S1a",
        f"pending {PENDING_SMALL}, {batches} transactions of 9 tuples a measurement; persistent_aggregate into a "
        "SnapshottableMap, SQLite with synchronous FULL",
    )


def _into_postgresql(bench: Bench) -> None:
    batches, commits = bench.amount(BATCHES), bench.amount(BARE_COMMITS)
    bench.say("starting postgresql")
    store = bench.lab.databases.postgresql()
    bare = BareLoop(store)
    with _submit(bench, store) as stream:
        bench.say("warming up")
        stream.run(bench.amount(WARM_UP_SMALL))
        bare.run(commits)
        for number in range(bench.repeats):
            ours, theirs = alternately(number, lambda: stream.run(batches), lambda: bare.run(commits))
            bench.recorder.pair("S2", batches / ours, commits / theirs, amounts=[batches, commits])
        assert total(store).map.items() == {"tuples": stream.gate.begun * BATCH_TUPLES}
    bare.close()
    bench.recorder.note("S2", "fsync on; psycopg alone sends one prepared statement a transaction, with autocommit")
