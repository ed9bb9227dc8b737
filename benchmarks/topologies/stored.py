"""GlobalCount and Words on the ready parts of `stormline.state`, in a database."""

from __future__ import annotations

from benchmarks.topologies.columnar import ColumnarSpout
from benchmarks.topologies.synthetic import SyntheticSpout
from stormline import TransactionalTopologyBuilder
from stormline.state import Count, SnapshottableMap, Store, TransactionalMap, persistent_aggregate
from stormline.topology.topology import Topology

TOTALS, WORDS = "totals", "words"
CACHE_ROWS = 10_000


def total(store: Store) -> SnapshottableMap:
    """Return where GlobalCount stores."""
    totals = TransactionalMap(store, TOTALS, key={"name": str}, value={"count": int}, cache=CACHE_ROWS)
    return SnapshottableMap(totals, "tuples")


def counts(store: Store) -> TransactionalMap:
    """Return where Words stores."""
    return TransactionalMap(store, WORDS, key={"word": str}, value={"count": int}, cache=CACHE_ROWS)


def stored_global_count(topology_id: str, store: Store) -> Topology:
    """Build GlobalCount with storm-starter's numbers: 3 partitions of 3 tuples, 3 spout tasks, 5 counting tasks."""
    builder = TransactionalTopologyBuilder(topology_id, "spout", SyntheticSpout(3, 3), 3)
    persistent_aggregate(builder, "sum", "spout", total(store), {"count": Count()}, partial_parallelism=5)
    return builder.build_topology()


def stored_words(topology_id: str, store: Store, batch_tuples: int, *, batches: bool = False) -> Topology:
    """Build Words with 2 tasks of each component, on rows or on record batches."""
    spout = (ColumnarSpout if batches else SyntheticSpout)(2, batch_tuples // 2)
    builder = TransactionalTopologyBuilder(topology_id, "spout", spout, 2)
    persistent_aggregate(builder, "count", "spout", counts(store), {"count": Count()}, parallelism=2, batches=batches)
    return builder.build_topology()
