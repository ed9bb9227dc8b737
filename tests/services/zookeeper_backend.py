"""ZooKeeper as the contract tests want it, with a client of its own that edits behind the stores' backs."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from typing import Any

from kazoo.client import KazooClient

from stormline.runtime.coordination.compatibility import check_spout_kind
from stormline.runtime.zookeeper.store import ZooKeeperStateStore


class ZooKeeperBackend:
    def __init__(self, hosts: str, **client_options: Any) -> None:
        self.hosts = hosts
        self.root = f"/test-{uuid.uuid4().hex}/transactional"
        self.node = f"{self.root}/topo"
        self.client = KazooClient(hosts, **client_options)
        self.client.start()
        self._stores: list[ZooKeeperStateStore] = []
        self._drivers: list[subprocess.Popen[str]] = []

    def open(self, topology_id: str = "topo", **options: Any) -> ZooKeeperStateStore:
        options = {
            "check_state": check_spout_kind,
            "hosts": self.hosts,
            "session_timeout_ms": 5000,
            "connection_timeout_ms": 5000,
            **options,
        }
        store = ZooKeeperStateStore.open(root=self.root, topology_id=topology_id, **options)
        self._stores.append(store)
        return store

    def make_zombie(self, topology_id: str) -> None:
        self._stores[-1]._ownership._live_changed = lambda event: None  # type: ignore[method-assign]
        self._stores[-1]._session._client._data_watchers.clear()
        self.client.delete(f"{self.root}/{topology_id}/live")

    def expire(self, topology_id: str) -> None:
        client = self._stores[-1]._session._client
        connect = client.handler.create_connection
        client.handler.create_connection = _refuse  # or the two would take the session from each other in turn
        twin = KazooClient(self.hosts, client_id=client.client_id)
        twin.start()
        twin.stop()
        twin.close()
        client.handler.create_connection = connect

    def start_driver(self, session_timeout_ms: int = 5000) -> subprocess.Popen[str]:
        """Start a driver in a process of its own."""
        driver = subprocess.Popen(
            [sys.executable, "-m", "tests.cluster.state_store_driver", self.hosts, self.root, str(session_timeout_ms)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._drivers.append(driver)
        return driver

    def stop(self) -> None:
        for driver in self._drivers:
            driver.kill()
            driver.communicate()
        for store in self._stores:
            store.close()
        self.client.stop()
        self.client.close()


def _refuse(*args: Any, **options: Any) -> None:
    raise ConnectionRefusedError


def tell(driver: subprocess.Popen[str], line: str) -> str:
    """Let a driver write `line` and return what it says."""
    assert driver.stdin is not None
    driver.stdin.write(f"{line}\n")
    driver.stdin.flush()
    return hear(driver)


def hear(driver: subprocess.Popen[str]) -> str:
    """Return the next line that a driver says."""
    assert driver.stdout is not None
    return driver.stdout.readline().strip()
