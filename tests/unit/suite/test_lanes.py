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


def job(folder: Path, name: str, *, first: bool = False, yields: bool = False, code: int = 0) -> Job:
    command = (sys.executable, "-c", NOTES, str(folder), name, str(code))
    return Job(Part(name, command=command, first=first, yields=yields), command, folder / f"{name}.log")


def test_no_more_run_at_once_than_there_are_lanes_and_one_that_yields(tmp_path: Path) -> None:
    jobs = [job(tmp_path, "one", yields=True), job(tmp_path, "two", yields=True)]
    jobs += [job(tmp_path, "a"), job(tmp_path, "b"), job(tmp_path, "c", code=3)]
    (tmp_path / "go").touch()
    ended = {one.job.part.name: one.code for one in Lanes(1, print).run(jobs)}
    assert ended == {"one": 0, "two": 0, "a": 0, "b": 0, "c": 3}
    assert {each.log.read_text() for each in jobs} <= {"1 at once\n", "2 at once\n"}


def test_others_wait_for_the_end_of_one_that_goes_first(tmp_path: Path) -> None:
    jobs = [job(tmp_path, "one", first=True), job(tmp_path, "a")]
    (tmp_path / "go").touch()
    assert [one.job.part.name for one in Lanes(2, print).run(jobs)] == ["one", "a"]
    assert [each.log.read_text() for each in jobs] == ["1 at once\n", "1 at once\n"]


def test_one_that_yields_begins_beside_full_lanes_and_has_the_lowest_priority(tmp_path: Path) -> None:
    priority = (sys.executable, "-c", f"import os; print(os.nice(0)); open({str(tmp_path / 'go')!r}, 'w')")
    jobs = [job(tmp_path, "a"), Job(Part("yields", command=priority, yields=True), priority, tmp_path / "log")]
    assert [one.failed for one in Lanes(1, print).run(jobs)] == [False, False]
    assert (tmp_path / "log").read_text() == "19\n"


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


def test_one_that_takes_too_long_is_ended_with_all_it_started_and_the_others_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = tmp_path / "child"
    command = (sys.executable, "-c", STUBBORN, str(child))
    stubborn = Job(Part("stubborn", command=command, secs_max=900.0), command, tmp_path / "log")
    monkeypatch.setattr(lanes_module, "END_SECS", 0.2)
    monkeypatch.setattr(lanes_module._Running, "secs", lambda running: 901.0 if "42%" in running.line() else 0.0)
    (tmp_path / "go").touch()
    whys = {one.job.part.name: (one.why, one.failed) for one in Lanes(2, print).run([stubborn, job(tmp_path, "a")])}
    assert whys == {"stubborn": ("ended: it took more than 900 s", True), "a": ("", False)}
    pid = int(child.read_text())
    eventually(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)


def test_when_the_time_for_all_is_over_what_runs_is_ended_and_nothing_begins(tmp_path: Path) -> None:
    command = (sys.executable, "-c", "import time; time.sleep(600)")
    sleeps = Job(Part("sleeps", command=command), command, tmp_path / "log")
    ended = {one.job.part.name: one for one in Lanes(1, print, 1.0).run([sleeps, job(tmp_path, "a")])}
    assert {name: one.why for name, one in ended.items()} == {
        "a": "not begun: the 1 s for all are over",
        "sleeps": "ended: the 1 s for all are over",
    }
    assert [one.failed for one in ended.values()] == [True, True]
    assert not list(tmp_path.glob("runs-*")), "a did not run"
