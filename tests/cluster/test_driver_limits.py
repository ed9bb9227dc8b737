"""A driver gets no file descriptor any more, or no byte on the disk: it stops in time, and the next run goes on."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from tests.cluster.driver_process import DriverProcess
from tests.cluster.test_kill_minus_nine import LIFE_SECS, Lives
from tests.topologies.keyed_sums import DATA, TRANSACTIONS

ENDS_SECS = 60.0
DATABASE_NOT_OPENED = "unable to open database file"
NOTHING_OPENED = "Too many open files"
ZOOKEEPER_NOT_REACHED = "the next driver will know whether that was applied"


@pytest.fixture
def lives(tmp_path: Path) -> Iterator[Lives]:
    made = Lives(tmp_path)
    yield made
    made.close()


def running(lives: Lives) -> DriverProcess:
    driver = lives.start("finish_batch")
    assert driver.wait_until(lambda: lives.txid_stored() >= 5, LIFE_SECS), lives.output
    return driver


def stops_and_the_next_run_goes_on(lives: Lives, driver: DriverProcess, why: str) -> None:
    assert driver.end(ENDS_SECS) == 1, lives.output
    assert 5 <= lives.txid_stored() < TRANSACTIONS
    assert re.search(f"^(topology 'keyed-sums' stopped|error): .*({why})", lives.output, re.MULTILINE), lives.output
    lives.close()

    assert lives.start("finish_batch").end(LIFE_SECS) == 0, lives.output
    expected = Counter(key for rows in DATA.values() for key, _ in rows)
    with closing(sqlite3.connect(lives.database)) as db:
        assert dict(db.execute("SELECT key, rows FROM sums").fetchall()) == expected


def test_a_driver_without_file_descriptors_stops_with_the_error_and_the_next_run_goes_on(lives: Lives) -> None:
    driver = running(lives)
    process = psutil.Process(driver.pid)
    fewer = process.num_fds() // 2  # what it has open stays open; nothing can be opened
    process.rlimit(psutil.RLIMIT_NOFILE, (fewer, fewer))
    stops_and_the_next_run_goes_on(lives, driver, f"{DATABASE_NOT_OPENED}|{NOTHING_OPENED}|{ZOOKEEPER_NOT_REACHED}")


def test_a_driver_whose_files_can_take_no_byte_more_stops_and_the_next_run_goes_on(lives: Lives) -> None:
    """Spark's files and those of the embedded ZooKeeper: a write fails as it does on a full disk."""
    driver = running(lives)
    (jvm,) = [child for child in psutil.Process(driver.pid).children() if child.name() == "java"]
    jvm.rlimit(psutil.RLIMIT_FSIZE, (0, 0))
    stops_and_the_next_run_goes_on(lives, driver, ZOOKEEPER_NOT_REACHED)
