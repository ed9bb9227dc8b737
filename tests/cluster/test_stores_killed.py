"""The driver is killed at each point of a commit: the next one finds out by the fence, and each word counts once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import psycopg
import pytest

from tests.cluster.driver_process import DriverProcess
from tests.services.postgresql import PostgreSQL
from tests.topologies.stored_counts import GROUP_POINTS, POINTS, TRANSACTIONS

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
        db.execute("DROP SCHEMA IF EXISTS killed CASCADE")
        db.execute("CREATE SCHEMA killed")
    return f"{postgresql.dsn()} options=-csearch_path=killed"


def killed_at(
    points: Sequence[str], every: int, group: int, server: str, folder: Path, request: pytest.FixtureRequest
) -> str:
    """Kill a driver at each point, one after another, then let one end; return what they printed."""
    place = str(folder / "c.sqlite") if server == "sqlite" else request.getfixturevalue("postgresql_dsn")
    output = folder / "output.txt"
    env = {"COUNTS_STORE": place, "COUNTS_GROUP": str(group)}
    drivers: list[DriverProcess] = []

    def drive(**more: str) -> int:
        drivers.append(DriverProcess("tests.topologies.stored_counts", folder / "state", output, {**env, **more}))
        return drivers[-1].end(LIFE_SECS)

    try:
        for i, point in enumerate(points):
            assert drive(COUNTS_KILL=f"{point}:{every * i + 2}") == -9, (point, output.read_text())
        assert drive() == 0, output.read_text()
    finally:
        for driver in drivers:
            driver.close()
    checked = subprocess.run(
        [sys.executable, "-c", CHECK], env={**os.environ, **env}, capture_output=True, text=True, timeout=60
    )
    assert checked.returncode == 0, checked.stderr
    return output.read_text()


@pytest.mark.proof
@pytest.mark.parametrize("server", ["sqlite", "postgresql"])
def test_a_driver_that_is_killed_at_each_point_of_a_commit_counts_each_word_once(
    server: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    assert 3 * len(POINTS) < TRANSACTIONS
    assert "shares a step" not in killed_at(POINTS, 3, 1, server, tmp_path, request)


@pytest.mark.proof
@pytest.mark.parametrize("server", ["sqlite", "postgresql"])
def test_a_driver_that_is_killed_at_each_point_of_a_group_of_commits_counts_each_word_once(
    server: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    assert "shares a step" in killed_at(GROUP_POINTS, 1, 64, server, tmp_path, request)
