"""StateFiles: what was deleted, moved or replaced under a server is noticed, what the server itself does is not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from stormline.runtime.cluster.state_files import StateFiles
from stormline.runtime.errors import StateDirGone


@pytest.fixture
def files(tmp_path: Path) -> Path:
    made = tmp_path / "state" / "version-2"
    made.mkdir(parents=True)
    made.joinpath("snapshot.0").touch()
    return made


def watched(files: Path) -> StateFiles:
    return StateFiles(files.parent, files)


def test_logs_that_are_begun_and_purged_are_the_servers_own_doing(files: Path) -> None:
    state = watched(files)
    assert state.gone() is None
    files.joinpath("log.1").touch()
    assert state.gone() is None
    files.joinpath("log.ff").touch()
    files.joinpath("log.1").unlink()
    assert state.gone() is None
    files.joinpath("log.1000").touch()
    assert state.look() is None
    files.joinpath("log.ff").unlink()
    assert state.gone() is None


def delete(files: Path) -> None:
    shutil.rmtree(files.parent)


def empty(files: Path) -> None:
    for path in files.iterdir():
        path.unlink()


def move(files: Path) -> None:
    files.parent.rename(files.parents[1] / "elsewhere")


def replace(files: Path) -> None:
    """As a backup that is put back."""
    move(files)
    shutil.copytree(files.parents[1] / "elsewhere", files.parent)


def replace_log(files: Path) -> None:
    files.joinpath("log.7").rename(files.parent / "log.7")
    shutil.copy(files.parent / "log.7", files / "log.7")


@pytest.mark.parametrize("befalls", [delete, empty, move, replace, replace_log])
def test_files_that_are_taken_away_are_told_of_each_time(files: Path, befalls: object) -> None:
    files.joinpath("log.7").touch()
    state = watched(files)
    assert state.look() is None
    assert callable(befalls)
    befalls(files)
    for gone in (state.gone(), state.look(), state.gone()):
        assert isinstance(gone, StateDirGone)
        assert str(gone).startswith(
            f"state directory {files.parent} was deleted, moved or replaced while its topologies"
        )
