"""check_room: only a full disk is refused; what else is wrong is told by who writes there."""

from __future__ import annotations

import errno
import tempfile
from pathlib import Path
from typing import Any

import pytest

from stormline.runtime.errors import DiskFull
from stormline.runtime.world.disk_room import check_room


def test_a_directory_that_does_not_exist_yet_is_looked_at_where_it_will_be(tmp_path: Path) -> None:
    check_room(tmp_path / "state" / "zookeeper", "the state", "name another")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("number", "refused"), [(errno.ENOSPC, True), (errno.EDQUOT, True), (errno.EACCES, False)])
def test_a_full_disk_is_refused_with_its_free_bytes_and_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, refused: bool
) -> None:
    def fail(**options: Any) -> None:
        raise OSError(number, "No more")

    monkeypatch.setattr(tempfile, "TemporaryFile", fail)
    if not refused:
        check_room(tmp_path, "the state", "name another")
        return
    with pytest.raises(DiskFull, match=r"^the state cannot be written to /.* \(No more, [\d,]+ of [\d,]+ bytes"):
        check_room(tmp_path, "the state", "name another")
