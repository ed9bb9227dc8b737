"""Marks of drivers: found by the same user on the same machine, and by nobody else."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from stormline.runtime.world.driver_mark import KEPT_SECS, leave_mark, marked, remove_mark


@pytest.fixture
def marks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"stormline-drivers-{os.getuid()}"


def test_a_mark_is_found_by_its_token_alone(marks: Path) -> None:
    assert not marked("a1")
    leave_mark("a1")
    assert marked("a1")
    assert not marked("a2")
    assert not marked("../" + marks.name + "/a1")
    assert marks.stat().st_mode & 0o777 == 0o700


def test_who_ends_in_order_takes_the_mark_away_and_the_last_one_the_directory(marks: Path) -> None:
    leave_mark("a1")
    leave_mark("a2")
    remove_mark("a1")
    assert not marked("a1")
    assert marked("a2")
    remove_mark("a2")
    assert not marks.exists()
    remove_mark("a2")


def test_marks_where_others_may_write_count_for_nothing(marks: Path) -> None:
    marks.mkdir(mode=0o777)
    marks.chmod(0o777)
    leave_mark("a1")
    (marks / "a2").touch()
    assert not marked("a1")
    assert not marked("a2")


def test_a_machine_where_no_mark_can_be_left_is_one_without(marks: Path) -> None:
    marks.touch()
    leave_mark("a1")
    assert not marked("a1")


def test_marks_of_the_dead_go_in_time_and_those_of_the_living_stay(marks: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    leave_mark("alive")
    for token, pid in (("dead", ended.pid), ("old", ended.pid), ("living", os.getpid())):
        (marks / token).write_text(str(pid))
        if token != "dead":
            os.utime(marks / token, (0, (marks / token).stat().st_mtime - 2 * KEPT_SECS))
    leave_mark("new")
    assert sorted(path.name for path in marks.iterdir()) == ["alive", "dead", "living", "new"]
