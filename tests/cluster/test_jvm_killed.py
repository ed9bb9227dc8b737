"""The driver's JVM is killed, and with it Spark and the embedded ZooKeeper; the driver's Python process lives on."""

from __future__ import annotations

from types import SimpleNamespace

import psutil
from py4j.protocol import Py4JNetworkError

from stormline.runtime.spark_engine import SparkEngine
from tests.cluster.lives import ENDS_SECS, Lives


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
    driver = lives.start_and_commit()
    (jvm,) = [child for child in psutil.Process(driver.pid).children() if child.name() == "java"]
    jvm.kill()
    driver.end(ENDS_SECS)
    assert "keyed-sums" in lives.output.splitlines()[-1], lives.output
    lives.stop_and_go_on(driver)
