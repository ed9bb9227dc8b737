"""ZooKeeperReader: the values of a topology's state, read by one who claims nothing and changes nothing."""

from __future__ import annotations

from typing import Any

from kazoo.exceptions import NoNodeError

from stormline.runtime.state.state_store import check_part
from stormline.runtime.state.stored_value import unseal
from stormline.runtime.world.world import REAL, World
from stormline.runtime.zookeeper.security import OPEN, ZooKeeperSecurity
from stormline.runtime.zookeeper.session import ZooKeeperSession
from stormline.topology.serialization import PLAIN, Registry


class ZooKeeperReader:
    """Reads while a driver may own the topology, and write. Close it."""

    def __init__(self, session: ZooKeeperSession, node: str, registry: Registry) -> None:
        self._session = session
        self._node = node
        self._registry = registry

    @classmethod
    def open(
        cls,
        hosts: str,
        root: str,
        topology_id: str,
        registry: Registry = PLAIN,
        *,
        session_timeout_ms: int = 20_000,
        connection_timeout_ms: int = 15_000,
        security: ZooKeeperSecurity = OPEN,
        world: World = REAL,
    ) -> ZooKeeperReader:
        """Connect; see `ZooKeeperStateStore.open` for what is given and raised."""
        node = f"{root}/{check_part(topology_id, 'topology id')}"
        session = ZooKeeperSession.connect(
            world, hosts, node, session_timeout_ms, connection_timeout_ms, False, security
        )
        return cls(session, node, registry)

    def found(self) -> bool:
        """Return whether a driver has ever owned the topology."""
        try:
            self._session.get_all([f"{self._node}/owner"])
        except NoNodeError:
            return False
        return True

    def get(self, path: str) -> Any:
        """Return the value at `path`, not older than this call; raise `KeyError` where there is none."""
        full = f"{self._node}/state/{path}"
        try:
            self._session.sync(full)
            ((data, _),) = self._session.get_all([full])
        except NoNodeError:
            raise KeyError(f"no value at {full}") from None
        return unseal(data, self._registry, full)

    def close(self) -> None:
        """End the session."""
        self._session.stop()
