"""GlobalCount without end, in batches of 1,000 tuples, into the SQLite database that ENDLESS_DATABASE names."""

from __future__ import annotations

import os

from benchmarks.topologies.stored import total
from benchmarks.topologies.synthetic import GATES, Gate, SyntheticSpout
from stormline import Config, Topology, TransactionalTopologyBuilder
from stormline.state import Count, SQLiteStore, persistent_aggregate

TOPOLOGY_ID = "bench-endless"
DATABASE = "ENDLESS_DATABASE"
LAST_TXID = "SELECT max(txid) FROM totals"
BATCH_TUPLES = 1_000


def topology() -> Topology:
    """Declare the topology."""
    gate = GATES[TOPOLOGY_ID] = Gate()
    gate.release(1 << 60)
    builder = TransactionalTopologyBuilder(TOPOLOGY_ID, "spout", SyntheticSpout(2, BATCH_TUPLES // 2), 2)
    persistent_aggregate(builder, "sum", "spout", total(SQLiteStore(os.environ[DATABASE])), {"count": Count()})
    return builder.build_topology()


config = Config()
config.set_max_spout_pending(16)
