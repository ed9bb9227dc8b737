"""A run whose disk is full when it starts ends with one sentence, and goes on when there is room."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.driver_process import DriverProcess
from tests.cluster.lives import LIFE_SECS
from tests.services.small_disk import small_disk

pytestmark = pytest.mark.proof

FREE_BYTES = 64 * 1024


@pytest.fixture
def disk() -> Iterator[Path]:
    """A disk that is full but for a few pages."""
    with small_disk(FREE_BYTES) as place:
        yield place


class Runs:
    """Runs of keyed_sums, one after another, and what they print."""

    def __init__(self, directory: Path) -> None:
        self._output = directory / "output.txt"
        self._database = directory / "sums.sqlite"

    def run(self, state_dir: Path, *more: str, **env: str) -> int:
        """Run to the end; return the exit code."""
        self._output.unlink(missing_ok=True)
        env = {"KEYED_SUMS_DB": str(self._database), **env}
        driver = DriverProcess("tests.topologies.keyed_sums", state_dir, self._output, env, *more)
        try:
            return driver.end(LIFE_SECS)
        finally:
            assert driver.close() == []

    @property
    def lines(self) -> list[str]:
        return self._output.read_text().splitlines()


def test_a_disk_that_has_no_room_for_the_state_is_told_of_in_one_sentence(disk: Path, tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    state = disk / "state"
    assert runs.run(state) == 1
    (said,) = runs.lines
    assert said.startswith(
        f"error: the state (the embedded ZooKeeper's data) cannot be written to {state / 'zookeeper'} (No space left on"
    )
    assert "name a state directory on another disk (--state-dir DIR, LocalCluster(state_dir=…))" in said
    subprocess.run(["mount", "-o", "remount,size=16m", disk], check=True)
    assert runs.run(state) == 0, runs.lines


@pytest.mark.parametrize("told_by", ["spark.local.dir", "SPARK_LOCAL_DIRS", "java.io.tmpdir"])
def test_a_disk_that_has_no_room_for_sparks_files_is_told_of_in_one_sentence(
    disk: Path, tmp_path: Path, told_by: str
) -> None:
    runs = Runs(tmp_path)
    if told_by == "spark.local.dir":
        code = runs.run(tmp_path / "state", "--conf", f"spark.local.dir={disk}")
    elif told_by == "SPARK_LOCAL_DIRS":
        code = runs.run(tmp_path / "state", SPARK_LOCAL_DIRS=str(disk))
    else:
        code = runs.run(tmp_path / "state", JAVA_TOOL_OPTIONS=f"-Djava.io.tmpdir={disk}")
    assert code == 1
    (said,) = [line for line in runs.lines if "JAVA_TOOL_OPTIONS" not in line]
    assert said.startswith(f"error: Spark's temporary files cannot be written to {disk}")
    assert " (No space left on device, " in said
    assert "set spark.local.dir (in the environment SPARK_LOCAL_DIRS, which wins) to a directory on another" in said
