"""A state directory that is in use is refused before Spark starts."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stormline import LocalCluster
from stormline.runtime.cluster.state_dir import keep_to_user, used_by, wait_until_free
from stormline.runtime.errors import NoZooKeeper, StateDirInUse
from tests.kits.components import Store, line, numbers

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
            StateDirInUse,
            match=rf"state directory .* is in use by another process \({process.pid}, of user '.+': '.*python.*'\), "
            r"and was still after 0.1 s; stop that run first",
        ):
            wait_until_free(tmp_path, 0.1)
    finally:
        end(process)
    assert not used_by(tmp_path)


def test_a_holder_that_ends_is_waited_for(tmp_path: Path) -> None:
    process = hold(tmp_path, 0.3)
    try:
        wait_until_free(tmp_path, 30)
    finally:
        end(process)


def test_a_directory_that_is_new_or_free_is_not_in_use(tmp_path: Path) -> None:
    assert not used_by(tmp_path / "missing")
    (tmp_path / "lock").touch()
    assert not used_by(tmp_path)
    with (tmp_path / "lock").open("r+") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        assert not used_by(tmp_path), "a lock of this process is no other's"


def test_the_directory_and_its_lock_are_kept_from_other_users(tmp_path: Path) -> None:
    """Whoever may read a file may lock it."""
    for data_dir in (tmp_path / "new", tmp_path / "old"):
        if data_dir.name == "old":
            data_dir.mkdir()
            data_dir.chmod(0o775)
            (data_dir / "lock").touch()
            (data_dir / "lock").chmod(0o666)
        keep_to_user(data_dir)
        assert (data_dir.stat().st_mode & 0o777, (data_dir / "lock").stat().st_mode & 0o777) == (0o700, 0o600)
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        keep_to_user(tmp_path / "link")
    assert not (tmp_path / "elsewhere").exists()


def test_a_directory_of_another_user_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(
        StateDirInUse,
        match=r"is in use by user '.+': .*/lock cannot be opened \(Permission denied\); give this run its",
    ):
        keep_to_user(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
def test_another_user_cannot_take_the_lock(tmp_path: Path) -> None:
    for reached in (tmp_path, *tmp_path.parents):  # pytest's own, and the suite's, are closed to others already
        if not reached.stat().st_mode & 0o001:
            reached.chmod(reached.stat().st_mode | 0o055)
    data_dir = tmp_path / "zookeeper"
    data_dir.mkdir()
    lock = data_dir / "lock"
    lock.touch()

    def others_may_read() -> bool:
        return subprocess.run(["cat", str(lock)], user=65534, group=65534, stderr=subprocess.DEVNULL).returncode == 0

    assert others_may_read()
    keep_to_user(data_dir)
    assert not others_may_read()


def test_a_cluster_without_a_place_for_its_state_is_refused_before_spark_starts() -> None:
    topology = line("t", numbers(4), 1, lambda b: b.set_bolt("store", Store("t")).shuffle_grouping("spout"))
    with (
        LocalCluster(master="spark://127.0.0.1:1") as cluster,
        pytest.raises(NoZooKeeper, match=r"spark://127.0.0.1:1"),
    ):
        cluster.submit_topology("t", {}, topology)
