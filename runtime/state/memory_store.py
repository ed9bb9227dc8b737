"""The state store for tests: it keeps the contract, and everything in memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from stormline.runtime.errors import Fenced, SessionLost
from stormline.runtime.state.driver_identity import DriverIdentity
from stormline.runtime.state.graph_changes import check_description
from stormline.runtime.state.state_store import CheckState, OnLost, Op, any_state, check_part
from stormline.runtime.state.state_tree import StateTree
from stormline.runtime.state.stored_value import seal, unseal
from stormline.runtime.world.world import REAL
from stormline.topology.errors import StormlineError
from stormline.topology.serialization import PLAIN, Registry


@dataclass(slots=True)
class _Topology:
    epoch: int = 0
    description: bytes | None = None
    nodes: dict[str, bytes] = field(default_factory=dict)
    live: MemoryStateStore | None = None


class MemoryStateServer:
    """Keeps the state of topologies in memory between runs, as ZooKeeper does; and breaks, where a test wants it to.

    Given to several `InProcessCluster`s, one after another, it lets a topology go on where it stopped.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.topologies: dict[str, _Topology] = {}

    def vanish(self, topology_id: str) -> None:
        """Let the owner's claim vanish without telling it: a new driver may start, and the old one is a zombie.

        Args:
            topology_id (str): id of a topology that runs.

        Raises:
            KeyError: there was never a topology of this id.
        """
        self.topologies[topology_id].live = None

    def expire(self, topology_id: str) -> None:
        """End the owner's session, and tell it: its topology stops with `SessionLost`.

        Args:
            topology_id (str): id of a topology.

        Raises:
            KeyError: there was never a topology of this id.
        """
        topology = self.topologies[topology_id]
        store, topology.live = topology.live, None
        if store is not None:
            store.lose(SessionLost(f"the session of topology {topology_id!r} has expired; submit again"))

    def suspend(self, topology_id: str, suspended: bool = True) -> None:
        """Interrupt the owner's connection, so that no commit begins, or restore it.

        Args:
            topology_id (str): id of a topology.
            suspended (bool): whether it is interrupted from now on.

        Raises:
            KeyError: there was never a topology of this id.
        """
        store = self.topologies[topology_id].live
        if store is not None:
            store.suspended = suspended


class MemoryStateStore:
    """A `StateStore` over a `MemoryStateServer`."""

    def __init__(
        self, server: MemoryStateServer, topology_id: str, tree: StateTree, epoch: int, on_lost: OnLost | None
    ) -> None:
        self.epoch = epoch
        self.suspended = False
        self._server = server
        self._topology_id = topology_id
        self._tree = tree
        self._on_lost = on_lost
        self._lost: StormlineError | None = None
        self._holder = DriverIdentity.this_process(REAL, 0, "")

    @classmethod
    def open(
        cls,
        server: MemoryStateServer,
        topology_id: str,
        registry: Registry = PLAIN,
        description: Any = None,
        *,
        allow_changed: bool = False,
        check_state: CheckState = any_state,
        on_lost: OnLost | None = None,
    ) -> MemoryStateStore:
        """Take the ownership of a topology; see `ZooKeeperStateStore.open`.

        Raises:
            AlreadyRunning: another store owns it.
            TopologyChanged: the state belongs to a topology described otherwise, or its spout cannot go on with it.
            StateCorrupt: the state cannot be read.
        """
        check_part(topology_id, "topology id")
        with server.lock:
            topology = server.topologies.get(topology_id) or _Topology()
            if topology.live is not None:
                raise topology.live._holder.refuse(topology_id, "in memory")
            tree = StateTree(registry, topology_id)
            for path in sorted(topology.nodes):
                tree.load(path, topology.nodes[path], 0)
            if description is not None:
                sealed = seal(description, PLAIN)
                if topology.description is not None:
                    stored, now = (unseal(data, PLAIN, topology_id) for data in (topology.description, sealed))
                    if not allow_changed:
                        check_description(stored, now, topology_id, "in memory")
                    check_state(stored, now, tree, topology_id, "in memory")
                topology.description = sealed
            topology.epoch += 1
            topology.live = cls(server, topology_id, tree, topology.epoch, on_lost)
            server.topologies[topology_id] = topology
            return topology.live

    def get(self, path: str) -> Any:
        """Return a fresh copy of the value at `path`, or raise `KeyError`."""
        return self._tree.get(path)

    def children(self, path: str) -> list[str]:
        """Return the sorted names directly below `path`."""
        return self._tree.children(path)

    def write(self, ops: Sequence[Op]) -> None:
        """Apply all of `ops`, or none; see `StateStore.write`."""
        with self._server.lock:
            if self._lost is not None:
                raise self._lost
            changes = self._tree.plan(ops)
            topology = self._server.topologies[self._topology_id]
            if topology.live is not self:
                error = Fenced(
                    f"topology {self._topology_id!r}: epoch {self.epoch} is over, epoch {topology.epoch} "
                    "owns the state; this driver must stop"
                )
                self.lose(error)
                raise error
            for change in changes:
                if change.data is None:
                    del topology.nodes[change.path]
                else:
                    topology.nodes[change.path] = change.data
            self._tree.apply(changes)

    def connected(self) -> bool:
        """Return whether the ownership is certain now."""
        return self._lost is None and not self.suspended

    def close(self) -> None:
        """Give the ownership up."""
        with self._server.lock:
            topology = self._server.topologies[self._topology_id]
            if topology.live is self:
                topology.live = None
            if self._lost is None:
                self._lost = SessionLost(f"the state store of topology {self._topology_id!r} is closed")

    def lose(self, error: StormlineError) -> None:
        """End the ownership for `error`, and tell the owner, once."""
        if self._lost is None:
            self._lost = error
            if self._on_lost is not None:
                self._on_lost(error)
