"""The driver's JVM is killed or hangs, and with it Spark and the embedded ZooKeeper; the Python process lives on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import psutil
import pytest
from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]

from stormline.runtime.spark.engine import SparkEngine
from tests.cluster.driver_process import DriverProcess
from tests.cluster.lives import ENDS_SECS, LIFE_SECS, Lives
from tests.topologies.keyed_sums import TRANSACTIONS

pytestmark = pytest.mark.proof


class NoJvm:
    """What stands for a SparkContext of the JVM when that has died."""

    def sc(self) -> None:
        raise ConnectionRefusedError(111, "Connection refused")


def test_a_wave_that_fails_because_the_jvm_died_says_so_itself() -> None:
    """Asking it whether Spark has stopped fails too."""
    engine = SparkEngine.__new__(SparkEngine)
    engine._sc = cast(Any, SimpleNamespace(_jsc=NoJvm()))
    assert engine._is_lasting(Py4JNetworkError("Error while sending or receiving"))


def test_a_driver_whose_jvm_is_killed_ends_in_time_with_an_error_and_the_next_run_goes_on(lives: Lives) -> None:
    driver = lives.start_and_commit()
    (jvm,) = [child for child in psutil.Process(driver.pid).children() if child.name() == "java"]
    jvm.kill()
    driver.end(ENDS_SECS)
    assert "keyed-sums" in lives.output.splitlines()[-1], lives.output
    lives.stop_and_go_on(driver)


def hang(driver: DriverProcess) -> psutil.Process:
    """Let the JVM of a driver hang."""
    (jvm,) = [child for child in psutil.Process(driver.pid).children() if child.name() == "java"]
    jvm.suspend()
    return jvm


def has_ended(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_a_driver_whose_jvm_hangs_ends_in_time_with_an_error_and_the_next_run_goes_on(lives: Lives) -> None:
    driver = lives.start_and_commit()
    jvm = hang(driver)
    driver.end(ENDS_SECS)
    assert "Spark's JVM (process " in lives.output
    assert has_ended(jvm)
    lives.stop_and_go_on(driver)


def test_an_idle_driver_whose_jvm_hangs_ends_in_time_when_it_is_told_to_and_the_next_run_goes_on(lives: Lives) -> None:
    driver = lives.start("finish_batch", "", "--keep-running")
    assert driver.wait_until(lambda: lives.txid_stored() == TRANSACTIONS, LIFE_SECS), lives.output
    jvm = hang(driver)
    psutil.Process(driver.pid).terminate()
    assert driver.end(ENDS_SECS) in (143, 1), lives.output  # 1: the last record was not written yet
    assert "Spark's JVM (process " in lives.output
    assert has_ended(jvm)
    lives.close()
    assert lives.start("finish_batch").end(LIFE_SECS) == 0, lives.output
