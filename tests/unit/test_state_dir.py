"""A state directory that is in use is refused before Spark starts."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

import pytest

from stormline import LocalCluster
from stormline.runtime.errors import NoZooKeeper, StateDirInUse
from stormline.runtime.state_dir import in_use, wait_until_free
from tests.kit import Store, line, numbers

HOLD = """
import fcntl, sys, time
file = open(sys.argv[1], "r+")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(float(sys.argv[2]))
"""


def hold(data_dir: Path, secs: float) -> subprocess.Popen[str]:
    (data_dir / "lock").touch()
    command = [sys.executable, "-c", HOLD, str(data_dir / "lock"), str(secs)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_a_directory_that_another_process_serves_is_refused_by_name(tmp_path: Path) -> None:
    process = hold(tmp_path, 60)
    try:
        with pytest.raises(
            StateDirInUse, match=r"state directory .* is in use by another process.*stop that run first"
        ):
            wait_until_free(tmp_path, 0.1)
    finally:
        end(process)
    assert not in_use(tmp_path)


def test_a_holder_that_ends_is_waited_for(tmp_path: Path) -> None:
    process = hold(tmp_path, 0.3)
    try:
        wait_until_free(tmp_path, 30)
    finally:
        end(process)


def test_a_directory_that_is_new_or_free_is_not_in_use(tmp_path: Path) -> None:
    assert not in_use(tmp_path / "missing")
    (tmp_path / "lock").touch()
    assert not in_use(tmp_path)
    with (tmp_path / "lock").open("r+") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        assert not in_use(tmp_path), "a lock of this process is no other's"


def test_a_cluster_without_a_place_for_its_state_is_refused_before_spark_starts() -> None:
    topology = line("t", numbers(4), 1, lambda b: b.set_bolt("store", Store("t")).shuffle_grouping("spout"))
    with (
        LocalCluster(master="spark://127.0.0.1:1") as cluster,
        pytest.raises(NoZooKeeper, match=r"spark://127.0.0.1:1"),
    ):
        cluster.submit_topology("t", {}, topology)
