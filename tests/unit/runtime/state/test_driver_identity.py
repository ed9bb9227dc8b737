from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from stormline.runtime.state.driver_identity import DriverIdentity
from stormline.runtime.world import machine as machine_module
from stormline.runtime.world.driver_mark import leave_mark
from stormline.runtime.world.world import REAL
from tests.kits.components import eventually

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="what is provable needs Linux's /proc")

ME = DriverIdentity.this_process(REAL, 1000, "token")


@pytest.fixture(autouse=True)
def _marks_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("marks")))
    leave_mark("token")


def test_this_process_lives() -> None:
    assert ME.alive(REAL.machine) is True


def test_a_process_id_used_again_is_not_the_same_process() -> None:
    assert dataclasses.replace(ME, process="1").alive(REAL.machine) is False


def test_a_killed_process_is_dead_before_and_after_it_was_waited_for() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with child:
        held = dataclasses.replace(ME, pid=child.pid, process=str(REAL.machine.started(child.pid)))
        assert held.alive(REAL.machine) is True
        child.kill()
        eventually(lambda: held.alive(REAL.machine) is False)
    assert held.alive(REAL.machine) is False


def test_of_a_process_that_proc_hides_it_is_only_known_whether_its_id_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As `hidepid=2` shows the processes of other users: not at all."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with child:
        held = dataclasses.replace(ME, pid=child.pid, process=str(REAL.machine.started(child.pid)))
        monkeypatch.setattr(machine_module, "PROC", tmp_path)
        assert held.alive(REAL.machine) is None
        child.kill()
    assert held.alive(REAL.machine) is False


def test_a_process_of_another_user_that_may_not_be_signalled_is_not_taken_for_dead(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refused(pid: int, signal: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(machine_module, "PROC", tmp_path)
    monkeypatch.setattr(os, "kill", refused)
    assert ME.alive(REAL.machine) is None


def test_who_left_no_mark_here_may_live_on_a_clone_of_this_machine() -> None:
    """All that can be compared is the same there: boot id, host name, process ids."""
    elsewhere = dataclasses.replace(ME, process="1", token="elsewhere")
    assert elsewhere.alive(REAL.machine) is None
    leave_mark("elsewhere")
    assert elsewhere.alive(REAL.machine) is False


@pytest.mark.parametrize("other", [{"machine": "x"}, {"machine": ""}, {"host": "elsewhere"}, {"process": ""}])
def test_of_another_machine_nothing_is_known(other: dict[str, str]) -> None:
    assert dataclasses.replace(ME, **other).alive(REAL.machine) is None  # type: ignore[arg-type]


def test_where_process_ids_mean_something_else_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getpid", lambda: 0)
    assert ME.alive(REAL.machine) is None


@pytest.mark.parametrize("data", [None, {}, {**ME.to_data(), "pid": "1"}, {**ME.to_data(), "host": 1}])
def test_what_is_no_holder_is_refused(data: object) -> None:
    with pytest.raises(TypeError):
        DriverIdentity.from_data(data)
