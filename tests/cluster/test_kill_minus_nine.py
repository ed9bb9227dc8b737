"""kill -9 of a real driver, again and again: nothing is lost, and nothing is counted twice."""

from __future__ import annotations

import random
import signal
import sqlite3
import time
from collections import Counter
from contextlib import closing

import pytest

from tests.cluster.lives import LIFE_SECS, Lives
from tests.topologies.keyed_sums import DATA, TASKS, TRANSACTIONS

pytestmark = pytest.mark.proof

SEED = 20

STARTING = "while it starts"
RANDOM = "some time after a commit"
AT_POINTS = ["prepare:0:4", "within:0:4", "within:1:3", "after:0:3", "after:1:4"]  # see keyed_sums


def live_and_be_killed(lives: Lives, when: str, rng: random.Random) -> None:
    open_in = "prepare" if when.startswith("prepare") else rng.choice(["prepare", "finish_batch"])
    if when == STARTING:
        driver = lives.start(open_in)
        driver.wait_until(lambda: False, rng.uniform(0.2, 4.0))
        driver.kill()
    elif when == RANDOM:
        enough = lives.txid_stored() + rng.randint(1, 10)
        driver = lives.start(open_in)
        assert driver.wait_until(lambda: lives.txid_stored() >= enough, LIFE_SECS), lives.output
        time.sleep(rng.uniform(0, 0.3))
        driver.kill()
    else:
        assert lives.start(open_in, kill_at=when).end(LIFE_SECS) == -signal.SIGKILL, lives.output


def test_a_driver_killed_at_any_moment_loses_nothing_and_counts_nothing_twice(lives: Lives) -> None:
    rng = random.Random(SEED)
    kills = [STARTING] * 3 + [RANDOM] * 4 + AT_POINTS
    rng.shuffle(kills)
    begun = time.monotonic()
    for when in kills:
        before = lives.txid_stored()
        live_and_be_killed(lives, when, rng)
        after = lives.txid_stored()
        print(f"{time.monotonic() - begun:5.1f} s: killed {when}; stored transactions {before} → {after}")
        assert after < TRANSACTIONS, "all was committed before the last kill: there must be more transactions"
        assert after > before or when == STARTING
        if rng.random() < 0.5:  # else the next life begins while the JVM of this one may still run
            lives.close()
    assert lives.start("finish_batch").end(LIFE_SECS) == 0, lives.output

    rows: Counter[str] = Counter()
    sums: Counter[str] = Counter()
    for key, number in (row for partition in DATA.values() for row in partition):
        rows[key] += 1
        sums[key] += number
    with closing(sqlite3.connect(lives.database)) as db:
        stored = db.execute("SELECT key, rows, sum FROM sums").fetchall()
        commits = db.execute("SELECT txid, task, epoch FROM commits ORDER BY txid, epoch").fetchall()
    assert {key: (count, total) for key, count, total in stored} == {key: (rows[key], sums[key]) for key in rows}
    distinct = {(txid, task) for txid, task, _ in commits}
    assert distinct == {(txid, task) for txid in range(1, TRANSACTIONS + 1) for task in range(TASKS)}
    epochs = [epoch for _, _, epoch in commits]
    assert epochs == sorted(epochs), "a driver committed after its successor had"
    print(
        f"{len(kills)} kills, {TRANSACTIONS} transactions of {TASKS} tasks, {len(commits) - len(distinct)} commits "
        f"replayed and skipped, in {time.monotonic() - begun:.0f} s"
    )
