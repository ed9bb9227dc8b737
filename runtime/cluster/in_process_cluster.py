"""InProcessCluster: runs topologies without Spark and without ZooKeeper, for unit tests of bolts and spouts."""

from __future__ import annotations

from collections.abc import Callable

from stormline.runtime.cluster.base import Cluster
from stormline.runtime.cluster.in_process_engine import InProcessEngine
from stormline.runtime.cluster.submission import start_topology
from stormline.runtime.cluster.topology_handle import TopologyHandle
from stormline.runtime.coordination.compatibility import check_spout_kind
from stormline.runtime.coordination.progress import Snapshot
from stormline.runtime.state.memory_store import MemoryStateServer, MemoryStateStore
from stormline.runtime.tasks.commit_participants import CommitResources
from stormline.runtime.tasks.task_environment import registry_of
from stormline.topology.plan import Plan


class InProcessCluster(Cluster):
    """The double of `LocalCluster` for tests: the same runner, stage runner and commits, in this process.

    Neither Spark nor ZooKeeper is started. State is kept in memory, by `server`.

    Args:
        server (MemoryStateServer | None): keeps the state; a second cluster on the same server goes on where the first
            one stopped. None: one of its own.
        slots (int): number of Spark tasks of a stage that it stands for.
        at_commit (bool): whether committers get their tuples only at the commit, as on Spark where they get few.
        resources (CommitResources | None): what takes part in commits, where it is to be something else than bolts ask
            for; None: what they ask for.
    """

    def __init__(
        self,
        server: MemoryStateServer | None = None,
        slots: int = 2,
        at_commit: bool = False,
        resources: CommitResources | None = None,
    ) -> None:
        super().__init__()
        self._resources = resources
        self.server = server or MemoryStateServer()
        self._slots = slots
        self._at_commit = at_commit

    def _start(
        self, name: str, plan: Plan, allow_changed: bool, on_wave: Callable[[Snapshot], None] | None
    ) -> TopologyHandle:
        return start_topology(
            name,
            plan,
            lambda on_lost: MemoryStateStore.open(
                self.server,
                plan.topology_id,
                registry_of(plan),
                plan.describe(),
                allow_changed=allow_changed,
                check_state=check_spout_kind,
                on_lost=on_lost,
            ),
            lambda env: InProcessEngine(env, self._slots, self._at_commit),
            on_wave,
            resources=self._resources,
        )
