"""Who looks at SQLite's stores, in a file and in memory; servers are in tests/cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stormline.state import MemoryStore, SQLiteStore
from tests.contracts.inspected_store import InspectedStoreContract, OneMomentContract
from tests.contracts.store import process

__all__ = ["process"]


class TestInspectedMemoryStore(InspectedStoreContract):
    @pytest.fixture
    def store(self) -> Iterator[MemoryStore]:
        made = MemoryStore("inspected", timeout_secs=5)
        yield made
        made.clear()


class TestInspectedSQLiteStore(InspectedStoreContract, OneMomentContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> SQLiteStore:
        return SQLiteStore(tmp_path / "store.sqlite")
