"""Commits on the executors of a real standalone cluster, which are killed in the middle of one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen

import psutil
import pytest

from tests.cluster import placed_driver
from tests.cluster.placed_driver import ROWS, RUN_SECS, TRANSACTIONS, TXID_OF_TROUBLE
from tests.kits.placement import Begun, FencedStore
from tests.services.spark_standalone import SparkStandalone

pytestmark = pytest.mark.proof


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkStandalone]:
    with SparkStandalone(tmp_path_factory.mktemp("standalone")) as cluster:
        yield cluster


def await_trouble(store: FencedStore, driver: Popen[str], log: Path, tasks: int) -> Begun:
    """Wait until all tasks are in the commit that is to be broken; return the first that is."""
    deadline = time.monotonic() + RUN_SECS
    while True:
        within = [one for one in store.begun() if (one.txid, one.attempt) == (TXID_OF_TROUBLE, 1)]
        if len(within) == tasks:
            return min(within, key=lambda one: one.task)
        assert driver.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)


def host_of(standalone: SparkStandalone, pid: int) -> tuple[str, psutil.Process]:
    """Return the worker, and its executor's JVM, that a Python process belongs to."""
    above = {process.pid for process in psutil.Process(pid).parents()}
    for host in standalone.hosts:
        for executor in standalone.executors(host):
            if executor.pid in above:
                return host, executor
    raise AssertionError(f"process {pid} belongs to no executor")


def end(driver: Popen[str], log: Path, store: FencedStore) -> str:
    """Wait for the driver to end; see that nothing was lost, nothing counted twice, and no token shown twice."""
    driver.communicate(timeout=RUN_SECS)
    text = log.read_text()
    assert driver.returncode == 0, text
    assert sorted(store.values()) == list(range(ROWS))
    store.check_tokens()
    assert {one.txid for one in store.begun()} == set(range(1, TRANSACTIONS + 1))
    return text


def test_an_executor_that_is_killed_in_a_commit_shows_no_token_to_user_code_twice(
    standalone: SparkStandalone, tmp_path: Path
) -> None:
    store = FencedStore(tmp_path / "store.sqlite")
    with placed_driver.started(standalone.master_url, tmp_path, "waits") as driver:
        begun = await_trouble(store, driver, tmp_path / "log", 2)
        _, executor = host_of(standalone, begun.pid)
        executor.kill()
        log = end(driver, tmp_path / "log", store)
    assert f"attempt {TXID_OF_TROUBLE}:1 fails and is replayed: commit of txid {TXID_OF_TROUBLE}: store came to" in log


def test_a_machine_that_is_lost_in_a_commit_makes_spark_run_the_task_again_and_that_is_refused(
    standalone: SparkStandalone, tmp_path: Path
) -> None:
    """spark.task.maxFailures=1 does not keep Spark from it: a lost machine does not count as a failure."""
    store = FencedStore(tmp_path / "store.sqlite")
    with placed_driver.started(standalone.master_url, tmp_path, "waits") as driver:
        begun = await_trouble(store, driver, tmp_path / "log", 2)
        host, _ = host_of(standalone, begun.pid)
        standalone.kill_worker(host)
        standalone.restart_worker(host)
        log = end(driver, tmp_path / "log", store)
    refused = "this Spark task may have run before (attempt number 1 of Spark's): nothing is run twice"
    assert f"attempt {TXID_OF_TROUBLE}:1 fails and is replayed: {refused}" in log


def test_a_zombie_that_outlives_its_executor_is_turned_away_by_its_token(
    standalone: SparkStandalone, tmp_path: Path
) -> None:
    store = FencedStore(tmp_path / "store.sqlite")
    with placed_driver.started(standalone.master_url, tmp_path, "survives") as driver:
        begun = await_trouble(store, driver, tmp_path / "log", 1)
        _, executor = host_of(standalone, begun.pid)
        zombie = psutil.Process(begun.pid)
        executor.kill()
        end(driver, tmp_path / "log", store)
    zombie.wait(30)
    ((_, _, note),) = store.notes()
    assert note.startswith(f"('store', {begun.task}) comes with token (1, {TXID_OF_TROUBLE}, 1), after (1, ")
