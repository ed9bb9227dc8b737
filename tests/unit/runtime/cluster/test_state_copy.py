"""A copy of a state directory, made while its server may write to it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from stormline.errors import NoState
from stormline.runtime.cluster import state_copy
from stormline.runtime.cluster.state_copy import copy_files, served_copy


def test_only_zookeepers_files_are_copied_snapshots_before_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, copied = tmp_path / "version-2", []
    files.mkdir()
    for name in ("log.1", "log.a", "snapshot.0", "snapshot.9", "other"):
        (files / name).write_text(name)

    def copyfile(source: Path, target: Path) -> Any:
        copied.append(source.name)
        return copy(source, target)

    copy = shutil.copyfile
    monkeypatch.setattr(shutil, "copyfile", copyfile)
    copy_files(files, tmp_path / "copy")
    assert copied == ["snapshot.0", "snapshot.9", "log.1", "log.a"]
    assert {path.name: path.read_text() for path in (tmp_path / "copy").iterdir()} == {name: name for name in copied}


def test_a_file_that_is_deleted_meanwhile_begins_the_copy_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = tmp_path / "version-2"
    files.mkdir()
    for name in ("log.1", "snapshot.0", "snapshot.9"):
        (files / name).write_text(name)
    copy = shutil.copyfile

    def copyfile(source: Path, target: Path) -> Any:
        if source.name == "snapshot.0":
            source.unlink()  # the server has purged it
        return copy(source, target)

    monkeypatch.setattr(shutil, "copyfile", copyfile)
    copy_files(files, tmp_path / "copy")
    assert sorted(path.name for path in (tmp_path / "copy").iterdir()) == ["log.1", "snapshot.9"]


def test_files_that_vanish_again_and_again_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(files: Path, into: Path) -> None:
        raise FileNotFoundError(files)

    monkeypatch.setattr(state_copy, "_copy_once", gone)
    with pytest.raises(FileNotFoundError):
        copy_files(tmp_path, tmp_path / "copy")


def test_where_no_topology_has_run_it_is_said(tmp_path: Path) -> None:
    why = r"there is no state of a topology in .*; run it first, name its directory"
    with pytest.raises(NoState, match=why), served_copy(tmp_path / "none"):
        raise AssertionError
    assert not (tmp_path / "none").exists()
