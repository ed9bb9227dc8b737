"""Lanes: how many jobs run at once, and that nothing is left of them where they are stopped."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from tests.kits.components import eventually
from tests.suite import lanes as lanes_module
from tests.suite.lanes import Job, Lanes
from tests.suite.parts import Part

# Notes in a folder that it runs, and how many do with it; waits until it may end.
NOTES = """
import sys, time
from pathlib import Path
folder, name = Path(sys.argv[1]), sys.argv[2]
(folder / f"runs-{name}").touch()
while not (folder / "go").exists():
    time.sleep(0.01)
print(f"{len(list(folder.glob('runs-*')))} at once")
time.sleep(0.3)
(folder / f"runs-{name}").unlink()
sys.exit(int(sys.argv[3]))
"""

# Starts a process that outlives it, as servers do, and does not heed Ctrl-C.
STUBBORN = """
import signal, subprocess, sys, time
from pathlib import Path
signal.signal(signal.SIGINT, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
Path(sys.argv[1]).write_text(str(child.pid))
print("[ 10%] [ 42%]", flush=True)
time.sleep(600)
"""


def job(folder: Path, name: str, *, alone: bool = False, code: int = 0) -> Job:
    command = (sys.executable, "-c", NOTES, str(folder), name, str(code))
    return Job(Part(name, command=command, alone=alone), command, folder / f"{name}.log")


def test_as_many_run_at_once_as_there_are_lanes_but_for_those_that_run_alone(tmp_path: Path) -> None:
    jobs = [job(tmp_path, "first", alone=True), job(tmp_path, "a"), job(tmp_path, "b"), job(tmp_path, "c", code=3)]
    (tmp_path / "go").touch()
    ended = {one.job.part.name: one.code for one in Lanes(2, print).run([*jobs, job(tmp_path, "last", alone=True)])}
    assert ended == {"first": 0, "a": 0, "b": 0, "c": 3, "last": 0}
    at_once = {each.part.name: each.log.read_text() for each in jobs}
    assert at_once["first"] == "1 at once\n"
    assert {at_once["a"], at_once["b"]} <= {"1 at once\n", "2 at once\n"}
    assert (tmp_path / "last.log").read_text() == "1 at once\n"


def test_two_do_run_at_once(tmp_path: Path) -> None:
    with (
        closing(Lanes(2, print).run([job(tmp_path, "a"), job(tmp_path, "b")])) as running,
        ThreadPoolExecutor(1) as pool,
    ):
        first = pool.submit(next, running)
        eventually(lambda: all((tmp_path / f"runs-{name}").exists() for name in "ab"))
        (tmp_path / "go").touch()
        first.result()
        assert len(list(running)) == 1
    assert "2 at once\n" in {(tmp_path / f"{name}.log").read_text() for name in "ab"}


def test_what_runs_is_told_from_time_to_time_and_ended_with_all_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes_module, "TOLD_SECS", 0.2)
    monkeypatch.setattr(lanes_module, "END_SECS", 0.2)
    child = tmp_path / "child"
    command = (sys.executable, "-c", STUBBORN, str(child))
    stubborn = Job(Part("stubborn", command=command), command, tmp_path / "log")

    def say(text: str) -> None:
        if "42%" in text:
            raise KeyboardInterrupt(text)

    with pytest.raises(KeyboardInterrupt, match=r" s: stubborn 42%$"):
        list(Lanes(2, say).run([stubborn]))
    pid = int(child.read_text())
    eventually(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
