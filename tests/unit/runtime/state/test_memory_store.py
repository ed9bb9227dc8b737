from __future__ import annotations

from typing import Any

import pytest

from stormline.runtime.coordination.compatibility import check_spout_kind
from stormline.runtime.state.memory_store import MemoryStateServer, MemoryStateStore
from stormline.runtime.state.state_store import StateStore
from tests.contracts.state_store import RotatingStateContract, StateStoreContract
from tests.contracts.transactional_state import (
    RotatingTransactionalStateContract,
    ThreadsContract,
    TransactionalStateContract,
)


class MemoryBackend:
    def __init__(self) -> None:
        self.server = MemoryStateServer()

    def open(self, topology_id: str = "topo", **options: Any) -> StateStore:
        return MemoryStateStore.open(self.server, topology_id, **{"check_state": check_spout_kind, **options})

    def make_zombie(self, topology_id: str) -> None:
        self.server.vanish(topology_id)

    def expire(self, topology_id: str) -> None:
        self.server.expire(topology_id)


@pytest.fixture
def backend() -> MemoryBackend:
    return MemoryBackend()


class TestMemoryStateStore(StateStoreContract):
    def test_an_interrupted_connection_is_seen(self, backend: MemoryBackend) -> None:
        store = backend.open()
        backend.server.suspend("topo")
        assert not store.connected()
        backend.server.suspend("topo", False)
        assert store.connected()


class TestRotatingState(RotatingStateContract):
    pass


class TestTransactionalState(TransactionalStateContract, ThreadsContract):
    pass


class TestRotatingTransactionalState(RotatingTransactionalStateContract):
    pass
