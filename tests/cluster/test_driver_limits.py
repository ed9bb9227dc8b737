"""A driver gets no file descriptor any more, or no byte on the disk: it stops in time, and the next run goes on."""

from __future__ import annotations

import re

import psutil
import pytest

from tests.cluster.driver_process import DriverProcess
from tests.cluster.lives import ENDS_SECS, Lives

pytestmark = pytest.mark.proof

DATABASE_NOT_OPENED = "unable to open database file"
NOTHING_OPENED = "Too many open files"
ZOOKEEPER_NOT_REACHED = "the next driver will know whether that was applied"


def stops_and_says_why(lives: Lives, driver: DriverProcess, why: str) -> None:
    driver.end(ENDS_SECS)
    assert re.search(f"^(topology 'keyed-sums' stopped|error): .*({why})", lives.output, re.MULTILINE), lives.output
    lives.stop_and_go_on(driver)


def test_a_driver_without_file_descriptors_stops_with_the_error_and_the_next_run_goes_on(lives: Lives) -> None:
    driver = lives.start_and_commit()
    process = psutil.Process(driver.pid)
    fewer = process.num_fds() // 2  # what it has open stays open; nothing can be opened
    process.rlimit(psutil.RLIMIT_NOFILE, (fewer, fewer))
    stops_and_says_why(lives, driver, f"{DATABASE_NOT_OPENED}|{NOTHING_OPENED}|{ZOOKEEPER_NOT_REACHED}")


def test_a_driver_whose_files_can_take_no_byte_more_stops_and_the_next_run_goes_on(lives: Lives) -> None:
    """Spark's files and those of the embedded ZooKeeper: a write fails as it does on a full disk."""
    driver = lives.start_and_commit()
    (jvm,) = [child for child in psutil.Process(driver.pid).children() if child.name() == "java"]
    jvm.rlimit(psutil.RLIMIT_FSIZE, (0, 0))
    stops_and_says_why(lives, driver, ZOOKEEPER_NOT_REACHED)
