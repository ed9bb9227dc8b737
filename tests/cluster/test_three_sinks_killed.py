"""2,000 transactions into three databases of different kinds: whoever is killed, each has each row once, in order."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.conftest import need_mariadb, need_postgresql
from tests.cluster.three_sinks import ThreeSinks
from tests.services.mariadb import MariaDB
from tests.services.postgresql import PostgreSQL
from tests.topologies.three_sinks import (
    COMMIT,
    COMMITTED,
    MARIADB,
    POSTGRESQL,
    PREPARE,
    PREPARED,
    ROWS,
    SINKS,
    STARROCKS,
    TRANSACTIONS,
    point,
)

pytestmark = pytest.mark.proof

KILLS = 50
AWAY_SECS_MAX = 0.5
SEED = 16


@pytest.fixture
def sinks(tmp_path: Path) -> Iterator[ThreeSinks]:
    """The topology, with servers of its own, which may be killed."""
    need_postgresql()
    need_mariadb()
    postgresql, mariadb = PostgreSQL(tmp_path / "postgresql.log"), MariaDB(tmp_path / "mariadb.log")
    try:
        postgresql.create()
        mariadb.create()
        made = ThreeSinks(tmp_path, postgresql, mariadb)
        yield made
        made.close()
    finally:
        mariadb.stop()
        postgresql.stop()


Kill = tuple[str, str, str]
"""Who is killed, at which sink's point, and which moment of it that is."""


def schedule(pick: random.Random) -> list[Kill]:
    """Return what is killed, and at which point.

    Each driver that dies as it recovers stands for two: the one before it has died before a commit.
    """
    executors, driver = (PREPARE, PREPARED), (COMMIT, COMMITTED)
    kills = [("driver", sink, COMMITTED) for sink in SINKS]
    kills += [("recovering driver", sink, "abort") for sink in SINKS]
    kills += [("worker", sink, moment) for sink in SINKS for moment in (*executors, PREPARED) for _ in range(2)]
    kills += [("worker", sink, PREPARE) for sink in SINKS]
    for server in (POSTGRESQL, MARIADB):
        kills += [(server, server, moment) for moment in (*executors, *driver) for _ in range(2)]
    kills += [("front", STARROCKS, COMMIT), ("front", STARROCKS, PREPARED)]
    kills += [("back-0", STARROCKS, PREPARE), ("back-1", STARROCKS, COMMITTED)]
    pick.shuffle(kills)
    return kills


def test_fifty_kills_leave_each_row_once_in_three_databases_and_nothing_prepared(sinks: ThreeSinks) -> None:
    pick = random.Random(SEED)
    kills = schedule(pick)
    killed: Counter[str] = Counter()
    begun = time.monotonic()
    for number, (what, sink, moment) in enumerate(kills):
        sinks.wait_for(number * TRANSACTIONS // (len(kills) + 5))
        away_secs = pick.uniform(0, AWAY_SECS_MAX)
        place = point(sink, moment)
        if what == "driver":
            sinks.kill_driver(place)
        elif what == "recovering driver":
            killed["driver"] += sinks.kill_recovering_driver(sink) - 1
            what = "driver"
        elif what == "worker":
            sinks.kill_worker(place)
        elif what in (POSTGRESQL, MARIADB):
            sinks.kill_server(what, place, away_secs)
        else:
            sinks.restart_starrocks(what, place, away_secs)
            what = STARROCKS
        killed[what] += 1
        print(f"{time.monotonic() - begun:5.0f} s: {what}, {place}; {sinks.watcher.committed} committed", flush=True)
    assert sinks.watcher.committed < TRANSACTIONS, "all was committed before the last kill"
    sinks.finish()
    visible, prepared = sinks.visible(), sinks.prepared()
    print(f"{killed.total()} kills: {dict(killed)}; StarRocks has aborted {sinks.aborted}; {sinks.watcher.looks} looks")
    assert killed.total() >= KILLS
    assert sinks.watcher.wrong == []
    for name, found in visible.items():
        assert sorted(found) == list(range(TRANSACTIONS * ROWS)), name
    became_visible = [n // ROWS for n in visible[STARROCKS]]
    assert became_visible == sorted(became_visible)
    assert prepared == {POSTGRESQL: [], MARIADB: [], STARROCKS: []}
