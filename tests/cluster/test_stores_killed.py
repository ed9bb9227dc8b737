"""The driver is killed at each point of a commit: the next one finds out by the fence, and each word counts once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.cluster.driver_process import DriverProcess
from tests.services.postgresql import PostgreSQL
from tests.topologies.stored_counts import POINTS, TRANSACTIONS

LIFE_SECS = 120.0

CHECK = """
from tests.topologies.stored_counts import *
assert COUNTS.items() == EXPECTED, COUNTS.items()
db = STORE.connect().native
assert db.execute("SELECT txid FROM log ORDER BY txid").fetchall() == [(i + 1,) for i in range(TRANSACTIONS)]
assert db.execute("SELECT topology, scope, txid FROM stormline_fence").fetchall() == [("counts", "", TRANSACTIONS)]
rows = [(word, i // 10 + 1) for words in DATA.values() for i, word in enumerate(words)]
seen = {word: max(txid for one, txid in rows if one == word) for word in EXPECTED}
assert LATEST.items() == seen, (LATEST.items(), seen)
"""


@pytest.fixture
def postgresql_dsn(postgresql: PostgreSQL) -> str:
    with psycopg.connect(postgresql.dsn(), autocommit=True) as db:
        db.execute("CREATE SCHEMA killed")
    return f"{postgresql.dsn()} options=-csearch_path=killed"


@pytest.mark.proof
@pytest.mark.parametrize("server", ["sqlite", "postgresql"])
def test_a_driver_that_is_killed_at_each_point_of_a_commit_counts_each_word_once(
    server: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    place = str(tmp_path / "c.sqlite") if server == "sqlite" else request.getfixturevalue("postgresql_dsn")
    output = tmp_path / "output.txt"
    drivers = []
    try:
        for i, point in enumerate(POINTS):
            env = {"COUNTS_STORE": place, "COUNTS_KILL": f"{point}:{3 * i + 2}"}
            drivers.append(DriverProcess("tests.topologies.stored_counts", tmp_path / "state", output, env))
            assert drivers[-1].end(LIFE_SECS) == -9, (point, output.read_text())
        drivers.append(
            DriverProcess("tests.topologies.stored_counts", tmp_path / "state", output, {"COUNTS_STORE": place})
        )
        assert drivers[-1].end(LIFE_SECS) == 0, output.read_text()
    finally:
        for driver in drivers:
            driver.close()
    env = {**os.environ, "COUNTS_STORE": place}
    checked = subprocess.run([sys.executable, "-c", CHECK], env=env, capture_output=True, text=True, timeout=60)
    assert checked.returncode == 0, checked.stderr
    assert 3 * len(POINTS) < TRANSACTIONS
