"""kill -9 of a real driver that commits files by two phases: each row once, in order, and nothing left behind."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.driver_process import DriverProcess
from tests.topologies.killed_files import ROWS, TASKS, TRANSACTIONS

pytestmark = pytest.mark.proof

LIFE_SECS = 300.0
SEED = 16

Start = Callable[..., DriverProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Drivers one after another; what they start has ended when the test has."""
    drivers: list[DriverProcess] = []

    def begin(kill_at: str = "") -> DriverProcess:
        env = {"KILLED_FILES": str(tmp_path / "files"), "KILL_AT": kill_at}
        state, output = tmp_path / "state", tmp_path / "output"
        drivers.append(DriverProcess("tests.topologies.killed_files", state, output, env))
        return drivers[-1]

    yield begin
    for driver in drivers:
        driver.close()


def visible(directory: Path) -> list[Path]:
    """Return the committed files, in the order of their transactions."""
    return sorted(directory.glob("*.jsonl"))


def test_files_of_a_driver_that_is_killed_at_any_moment_hold_each_row_once(start: Start, tmp_path: Path) -> None:
    files, rng = tmp_path / "files", random.Random(SEED)
    for kill_at in ("commit:2:before", "commit:4:after", "commit:5:before"):
        assert start(kill_at).end(LIFE_SECS) == -signal.SIGKILL, (tmp_path / "output").read_text()
    for _ in range(3):
        enough = len(visible(files)) + rng.randrange(2 * TASKS)
        driver = start()
        assert driver.wait_until(lambda enough=enough: len(visible(files)) > enough, LIFE_SECS)  # type: ignore[misc]
        driver.kill()
        assert len(visible(files)) < TRANSACTIONS * TASKS, "all was committed before the last kill"
    assert start().end(LIFE_SECS) == 0, (tmp_path / "output").read_text()
    numbers = [json.loads(line)["n"] for file in visible(files) for line in file.read_text().splitlines()]
    assert sorted(numbers) == list(range(ROWS))
    assert len(visible(files)) == TRANSACTIONS * TASKS
    assert [path.name for path in (files / ".pending").iterdir()] == []
