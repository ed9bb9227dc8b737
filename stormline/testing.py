"""What tests of topologies need: the in-process double of a cluster, and spouts of rows that a test gives.

`Tuple.of(values, fields)` makes a tuple by hand, for a test of one bolt.
"""

from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from stormline.runtime.state.memory_store import MemoryStateServer
from stormline.spouts.memory import MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout
from stormline.topology.tuples import Tuple

__all__ = [
    "InProcessCluster",
    "MemoryStateServer",
    "MemoryTransactionalSpout",
    "OpaqueMemoryTransactionalSpout",
    "Tuple",
]
