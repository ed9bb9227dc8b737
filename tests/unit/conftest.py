"""What every unit test finds as new: the ledgers and events of `tests.kits.components`; and a directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kits.components import EVENTS, LEDGERS


@pytest.fixture(autouse=True)
def fresh_kit() -> Iterator[None]:
    for shared in (LEDGERS, EVENTS):
        shared.clear()
    yield
    for shared in (LEDGERS, EVENTS):
        shared.clear()


@pytest.fixture
def in_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory of its own, as the current one."""
    monkeypatch.chdir(tmp_path)
