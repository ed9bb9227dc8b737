"""The state of a topology on a real ZooKeeper, read by one who claims nothing."""

from __future__ import annotations

import pytest

from stormline.runtime.state.state_store import Put
from stormline.runtime.zookeeper.reading import ZooKeeperReader
from tests.services.zookeeper_backend import ZooKeeperBackend


def test_values_are_read_while_a_driver_owns_them_and_changed_by_nobody(backend: ZooKeeperBackend) -> None:
    store = backend.open()
    store.write([Put("committed", {"txid": 1}), Put("batches/1", [1, 2])])
    before = (
        backend.client.get(f"{backend.node}/owner")[1].version,
        sorted(backend.client.get_children(backend.node)),
    )
    reader = ZooKeeperReader.open(backend.hosts, backend.root, "topo", connection_timeout_ms=5000)
    try:
        assert reader.found()
        assert (reader.get("committed"), reader.get("batches/1")) == ({"txid": 1}, [1, 2])
        with pytest.raises(KeyError, match=r"no value at .*/topo/state/batches/2"):
            reader.get("batches/2")
        after = backend.client.get(f"{backend.node}/owner")[1].version
        assert (after, sorted(backend.client.get_children(backend.node))) == before
        store.write([Put("committed", {"txid": 2})])
        assert reader.get("committed") == {"txid": 2}
        assert store.connected()
    finally:
        reader.close()


def test_a_topology_that_has_never_run_is_not_found_and_not_made(backend: ZooKeeperBackend) -> None:
    reader = ZooKeeperReader.open(backend.hosts, backend.root, "topo", connection_timeout_ms=5000)
    try:
        assert not reader.found()
        assert backend.client.exists(backend.root) is None
    finally:
        reader.close()
