"""InProcessCluster: runs topologies without Spark and without ZooKeeper, for unit tests of bolts and spouts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from stormline.runtime.engine import InProcessEngine
from stormline.runtime.handle import TopologyHandle
from stormline.runtime.memory_state_store import MemoryStateServer, MemoryStateStore
from stormline.runtime.progress import Snapshot
from stormline.runtime.starting import start_topology
from stormline.runtime.task_environment import registry_of
from stormline.topology.compiler import compile_topology
from stormline.topology.storm_names import storm_names
from stormline.topology.topology import Topology


@storm_names()
class InProcessCluster:
    """The double of `LocalCluster`: the same runner, stage runner and commits, in this process.

    Args:
        server: keeps the state; a second cluster on the same server goes on where the first one stopped.
        slots: stands for the number of Spark tasks of a stage.
        at_commit: whether committers get their tuples only at the commit, as on Spark where they get few.
    """

    def __init__(self, server: MemoryStateServer | None = None, slots: int = 2, at_commit: bool = False) -> None:
        self.server = server or MemoryStateServer()
        self._slots = slots
        self._at_commit = at_commit
        self._handles: list[TopologyHandle] = []

    def __enter__(self) -> InProcessCluster:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.shutdown()

    def submit_topology(
        self,
        name: str,
        config: Mapping[str, Any] | None,
        topology: Topology,
        *,
        allow_changed_topology: bool = False,
        on_wave: Callable[[Snapshot], None] | None = None,
    ) -> TopologyHandle:
        """Start a topology and return its handle; as `LocalCluster.submit_topology`."""
        plan = compile_topology(topology, config)
        handle = start_topology(
            name,
            plan,
            lambda on_lost: MemoryStateStore.open(
                self.server,
                topology.id,
                registry_of(plan),
                plan.describe(),
                allow_changed=allow_changed_topology,
                on_lost=on_lost,
            ),
            lambda env: InProcessEngine(env, self._slots, self._at_commit),
            on_wave,
        )
        self._handles.append(handle)
        return handle

    def shutdown(self) -> None:
        """Kill all topologies."""
        for handle in self._handles:
            handle.kill()
