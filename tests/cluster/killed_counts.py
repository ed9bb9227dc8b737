"""Topologies that count rows into SQLite, by drivers that are killed one after another on the way."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from tests.cluster.driver_process import DriverProcess

LIFE_SECS = 240.0
SEED = 15


def counted_though_killed(
    target: str, folder: Path, env: Mapping[str, str], kills: int, rows_max: int, pause_secs: float = 0.0
) -> tuple[int, ...]:
    """Kill so many drivers of a topology after a few transactions each, then let one end; return what is counted.

    Args:
        target: what counts into the database that KAFKA_COUNT_DB names.
        rows_max: how many rows there are: the last kill comes before all are counted.
        pause_secs: how long to wait, at most, before each kill, so that it comes anywhere in a transaction.
    """
    database, output = folder / "count.sqlite", folder / "output"
    rng = random.Random(SEED)
    drivers: list[DriverProcess] = []

    def start() -> DriverProcess:
        given = {**env, "KAFKA_COUNT_DB": str(database)}
        drivers.append(DriverProcess(target, folder / "state", output, given))
        return drivers[-1]

    def printed() -> str:
        return output.read_text(errors="replace")[-4000:]

    try:
        for _ in range(kills):
            driver = start()
            enough = _total(database)[3] + rng.randint(1, 8)
            assert driver.wait_until(lambda enough=enough: _total(database)[3] >= enough, LIFE_SECS), printed()  # type: ignore[misc]
            time.sleep(rng.uniform(0, pause_secs))
            driver.kill()
            rows, _, _, txid = _total(database)
            print(f"killed after transaction {txid}, {rows} rows")
            assert rows < rows_max, "all was counted before the last kill: there must be more rows"
        assert start().end(LIFE_SECS) == 0, printed()
    finally:
        for driver in drivers:
            driver.close()
    return _total(database)[:3]


def _total(database: Path) -> tuple[int, ...]:
    """Return rows, their sum, the sum of their squares, and the last transaction."""
    with closing(sqlite3.connect(database, timeout=20)) as db:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'total'").fetchone():
            return (0, 0, 0, 0)
        found = db.execute("SELECT rows, sum, squares, txid FROM total").fetchone()
        return tuple(found or (0, 0, 0, 0))
