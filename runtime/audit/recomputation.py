"""Recomputation: the first transactions of a topology once more, in this process, into stores of their own."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Any

from stormline.runtime.audit.bounded_spout import BoundedSpout, bounded
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from stormline.runtime.cluster.topology_handle import TopologyHandle
from stormline.runtime.coordination.batch_store import Batch, Batches
from stormline.runtime.errors import NotAuditable, TopologyFailed
from stormline.runtime.state.memory_store import MemoryStateServer, MemoryStateStore
from stormline.runtime.tasks.commit_participants import CommitResources
from stormline.runtime.tasks.task_environment import registry_of
from stormline.runtime.world.world import REAL
from stormline.state.inspection import Inspection
from stormline.state.memory import MemoryStore
from stormline.state.store import Store
from stormline.state.store_resource import StoreResource
from stormline.state.table import Key, Row, Table
from stormline.topology.commit_participants import CommitResource
from stormline.topology.compiler import compile_topology
from stormline.topology.config import COMMIT_PLACEMENT, MESSAGE_TIMEOUT_SECS
from stormline.topology.topology import Topology

POLL_SECS = 0.2
TIMEOUT_SECS = 86_400


class _Copies(CommitResources):
    """Lets each store of the topology be one in memory, and nothing else take part in a commit."""

    def __init__(self) -> None:
        super().__init__(REAL)
        self.stores: dict[Store, MemoryStore] = {}
        self.refused: NotAuditable | None = None

    def get(self, key: Hashable, open_resource: Callable[[], CommitResource]) -> CommitResource:
        """Return the resource that stands for that of this key."""
        if not isinstance(key, Store):
            self.refused = NotAuditable(
                f"a bolt lets {key!r} take part in its commits, which is no store: it would be told of each "
                "transaction once more; what comes after such a bolt cannot be audited"
            )
            raise self.refused
        copy = self.stores.setdefault(key, MemoryStore(f"audit-{uuid.uuid4()}"))
        return super().get(key, lambda: StoreResource(copy))


class Recomputation:
    """Works out what a topology has stored, from its first transaction on; a context manager."""

    def __init__(self, topology: Topology, config: Mapping[str, Any]) -> None:
        self._topology = topology
        self._config = {**config, COMMIT_PLACEMENT: "driver", MESSAGE_TIMEOUT_SECS: TIMEOUT_SECS}
        self._server = MemoryStateServer()
        self._copies = _Copies()
        self._txid = 0

    def __enter__(self) -> Recomputation:
        return self

    def __exit__(self, *_: object) -> None:
        for copy in self._copies.stores.values():
            copy.clear()

    def go_on(self, txid: int) -> Batch:
        """Work out all up to a transaction; return its batch.

        Raises:
            NotAuditable: the source holds fewer batches.
            StormlineError: user code has failed.
        """
        spout = bounded(self._topology.spout.obj, self._txid, txid)
        topology = replace(self._topology, spout=replace(self._topology.spout, obj=spout))
        with InProcessCluster(self._server, resources=self._copies) as cluster:
            self._await(cluster.submit(topology, self._config), spout, txid)
        self._txid = txid
        plan = compile_topology(topology, self._config)
        state = MemoryStateStore.open(self._server, topology.id, registry_of(plan))
        try:
            return Batches(state).known[txid]
        finally:
            state.close()

    def _await(self, handle: TopologyHandle, spout: BoundedSpout, txid: int) -> None:
        while True:
            try:
                handle.await_committed(txid, POLL_SECS)
                return
            except TopologyFailed:
                if self._copies.refused is not None:
                    raise self._copies.refused from None
                raise
            except TimeoutError:
                if spout.bounds.exhausted.is_set() and spout.bounds.begun == handle.txid_committed:
                    raise NotAuditable(
                        f"spout {self._topology.spout.id!r} gives {handle.txid_committed} batches now, and gave "
                        f"{txid}: its source has lost something, or is cut into batches otherwise than it was"
                    ) from None

    def tables(self, store: Store) -> dict[str, tuple[Table, dict[Key, Row]]]:
        """Return what a store is to hold: the tables of maps by name, and their rows."""
        copy = self._copies.stores.get(store)
        if copy is None:
            return {}
        with Inspection.of(copy) as seen:
            return {name: (held.table, seen.rows(held.table)) for name, held in seen.tables().items()}
