"""The driver's JVM is killed, and with it Spark and the embedded ZooKeeper; the driver's Python process lives on."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from py4j.protocol import Py4JNetworkError

from stormline.runtime.spark_engine import SparkEngine
from tests.cluster.test_kill_minus_nine import LIFE_SECS, Lives
from tests.topologies.keyed_sums import DATA, TRANSACTIONS

ENDS_SECS = 60.0


@pytest.fixture
def lives(tmp_path: Path) -> Iterator[Lives]:
    made = Lives(tmp_path)
    yield made
    made.close()


class NoJvm:
    """What stands for a SparkContext of the JVM when that has died."""

    def sc(self) -> None:
        raise ConnectionRefusedError(111, "Connection refused")


def test_a_wave_that_fails_because_the_jvm_died_says_so_itself() -> None:
    """Asking it whether Spark has stopped fails too."""
    engine = SparkEngine.__new__(SparkEngine)
    engine._sc = SimpleNamespace(_jsc=NoJvm())
    assert engine._is_lasting(Py4JNetworkError("Error while sending or receiving"))


def test_a_driver_whose_jvm_is_killed_ends_in_time_with_an_error_and_the_next_run_goes_on(lives: Lives) -> None:
    driver = lives.start("finish_batch")
    assert driver.wait_until(lambda: lives.txid_stored() >= 5, LIFE_SECS), lives.output
    (jvm,) = [child for child in psutil.Process(driver.pid).children() if child.name() == "java"]
    jvm.kill()
    assert driver.end(ENDS_SECS) == 1, lives.output
    stored = lives.txid_stored()
    assert 5 <= stored < TRANSACTIONS
    assert "keyed-sums" in lives.output.splitlines()[-1], lives.output
    lives.close()

    assert lives.start("finish_batch").end(LIFE_SECS) == 0, lives.output
    expected = Counter(key for rows in DATA.values() for key, _ in rows)
    with closing(sqlite3.connect(lives.database)) as db:
        assert dict(db.execute("SELECT key, rows FROM sums").fetchall()) == expected
