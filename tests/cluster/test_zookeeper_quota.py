"""A real ZooKeeper that enforces a quota: what it refuses is said, and not sent again for ever."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stormline.runtime.errors import ZooKeeperDenied
from stormline.runtime.state.state_store import Put
from tests.services.zookeeper_backend import ZooKeeperBackend
from tests.services.zookeeper_server import ZooKeeperServer


@pytest.fixture
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperBackend]:
    data = tmp_path_factory.mktemp("quota")
    with ZooKeeperServer(data, jvm_options=["-Dzookeeper.enforceQuota=true"]) as server:
        backend = ZooKeeperBackend(server.hosts)
        yield backend
        backend.stop()


def limit(backend: ZooKeeperBackend, limit_bytes: int) -> None:
    """Let the topologies' root hold so many bytes."""
    quota = f"/zookeeper/quota{backend.root}"
    backend.client.ensure_path(backend.root)
    backend.client.ensure_path(quota)
    limits = f"count=-1,bytes=-1=;byteHardLimit={limit_bytes};countHardLimit=-1"
    backend.client.create(f"{quota}/zookeeper_limits", limits.encode())
    backend.client.create(f"{quota}/zookeeper_stats", b"count=1,bytes=0")


def test_a_claim_that_is_over_the_quota_is_refused(backend: ZooKeeperBackend) -> None:
    limit(backend, 20)
    with pytest.raises(
        ZooKeeperDenied, match=r"refuses what is to be stored at .*/topo: QuotaExceeded\w*; nothing was"
    ):
        backend.open()


def test_a_write_that_is_over_the_quota_is_refused_and_smaller_ones_go_on(backend: ZooKeeperBackend) -> None:
    limit(backend, 2000)
    store = backend.open()
    with pytest.raises(ZooKeeperDenied, match=r"refuses what is to be stored at .*/topo: QuotaExceeded"):
        store.write([Put("a", "x" * 3000)])
    store.write([Put("a", "x")])
    assert store.get("a") == "x"
