"""S3, S4: 100,000 distinct keys in one commit of a map, against the same rows by the database's driver alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

from benchmarks.measuring.bare_upserts import TABLE, BareCopy, BareMariaDB, BareRedis, BareSQLite, BareUpsert
from benchmarks.measuring.bench import Bench, alternately
from benchmarks.measuring.databases import Databases
from benchmarks.measuring.recorder import NotAvailable
from stormline.state import Store, TransactionalMap

KEYS = 100_000
STRIDE = 7_919  # coprime to KEYS: they come in no order
COMMITS = 2
"""Commits a measurement."""

WAYS: Mapping[str, tuple[tuple[str, str], Callable[[Databases], Store], Callable[[Any], BareUpsert]]] = {
    "postgresql": (("S3a", "S3b"), Databases.postgresql, BareCopy),
    "sqlite": (("S4a", "S4b"), Databases.sqlite, BareSQLite),
    "mariadb": (("S4c", "S4d"), Databases.mariadb, BareMariaDB),
    "redis": (("S4e", "S4f"), Databases.redis, BareRedis),
}
"""By database: the figures of new and of existing keys, the store, and what it is measured against."""


class Commits:
    """Commits into one map, one transaction after another, as a committer does, without a topology around it."""

    def __init__(self, store: Store) -> None:
        from tests.kits.stores import Process

        self._words = TransactionalMap(store, TABLE, key={"word": str}, value={"count": int})
        self._process = Process()
        self.txid = 0

    def put(self, values: Mapping[str, int]) -> float:
        """Put all values in one commit; return the seconds it took from the map's opening until it was durable."""
        self.txid += 1
        begun = time.perf_counter()
        self._process.commit(
            self.txid, lambda context, attempt: self._words.begin_commit(context, attempt).multi_put(values)
        )
        return time.perf_counter() - begun

    def stored(self) -> dict[Any, Any]:
        """Return what the database holds."""
        return self._words.items()

    def close(self) -> None:
        """Close the connections."""
        self._process.end()


def run(bench: Bench) -> None:
    """Measure those of S3 and S4 that are asked for."""
    failed = []
    for database, (figures, store, bare) in WAYS.items():
        if not any(map(bench.recorder.wants, figures)):
            continue
        bench.say(f"starting {database}")
        try:
            _measure(bench, figures, store(bench.lab.databases), bare)
        except NotAvailable as error:
            failed.append(error)
    bench.lab.databases.close()
    if failed:
        raise failed[0]


def _measure(bench: Bench, figures: tuple[str, str], store: Store, make_bare: Callable[[Any], BareUpsert]) -> None:
    number = bench.amount(KEYS)
    words = [f"key-{i * STRIDE % number:08d}" for i in range(number)]
    with closing(Commits(store)) as ours:
        ours.put({words[0]: 1})  # makes the table
        with closing(make_bare(store)) as bare:

            def new_and_existing(put: Callable[[int], float]) -> tuple[float, float]:
                new = existing = 0.0
                for i in range(COMMITS):
                    bare.empty()
                    new += put(2 * i)
                    existing += put(2 * i + 1)
                return COMMITS * number / new, COMMITS * number / existing

            def our_put(i: int) -> float:
                return ours.put({word: i + n for n, word in enumerate(words)})

            def bare_put(i: int) -> float:
                rows = sorted((word, i + n, ours.txid) for n, word in enumerate(words))
                if isinstance(bare, BareCopy):
                    bare.empty()
                begun = time.perf_counter()
                bare.write(rows)
                return time.perf_counter() - begun

            new_and_existing(our_put)
            new_and_existing(bare_put)
            for round_number in range(bench.repeats):
                (our_new, our_existing), (new, existing) = alternately(
                    round_number, lambda: new_and_existing(our_put), lambda: new_and_existing(bare_put)
                )
                for key, one, other in zip(figures, (our_new, our_existing), (new, existing), strict=True):
                    bench.recorder.pair(key, one, other, keys=number, commits=COMMITS)
            ours.put({word: n for n, word in enumerate(words)})
            assert ours.stored() == {word: n for n, word in enumerate(words)}
    bench.recorder.note(
        figures[0],
        f"multi_put of a TransactionalMap, {number:,} keys of 12 characters in no order, one commit with its fence, "
        f"{COMMITS} commits a measurement; the bare driver is given its rows sorted",
    )
