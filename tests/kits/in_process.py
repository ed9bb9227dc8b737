"""Topologies run in this process: to the end, or as a spout under test allows."""

from __future__ import annotations

from typing import Any

from stormline import TransactionalTopologyBuilder
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from tests.kits.components import Store, line, numbers

PENDING_4 = {"topology.max.spout.pending": 4}


def drain(*bolts: Any, rows: Any = None, config: Any = None) -> Any:
    """Run bolts on a memory spout, of 40 numbers if no `rows` are given, until all is committed."""
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("t", config or PENDING_4, line("t", rows or numbers(40), 5, *bolts))
        handle.await_drained(60)
    return handle


def submit(cluster: InProcessCluster, spout: Any) -> Any:
    """Start a topology of a spout and a committer, which stores what it emits in ledger "t"."""
    builder = TransactionalTopologyBuilder("t", "spout", spout)
    builder.set_bolt("store", Store("t")).global_grouping("spout")
    return cluster.submit_topology("t", {}, builder.build_topology())
