"""storm-starter's TransactionalGlobalCount on the synthetic spout. The counting bolt is the example's."""

from __future__ import annotations

from benchmarks.topologies.synthetic import SyntheticSpout
from examples.global_count import BatchCount
from stormline import (
    BaseTransactionalBolt,
    Collector,
    ICommitter,
    OutputFieldsDeclarer,
    TopologyContext,
    TransactionalTopologyBuilder,
    TransactionAttempt,
    Tuple,
)
from stormline.topology.contracts import Conf
from stormline.topology.topology import Topology

DATABASE: dict[str, tuple[int, int]] = {}
"""By topology id: the count, and the txid that stored it."""


class UpdateGlobalCount(BaseTransactionalBolt, ICommitter):
    """Adds a batch's counts to the stored one of its topology, by the txid beside it."""

    gathers = ("sum",)

    def prepare(self, conf: Conf, context: TopologyContext, collector: Collector, batch_id: TransactionAttempt) -> None:
        self.key, self.attempt, self.sum = context.topology_id, batch_id, 0

    def execute(self, tup: Tuple) -> None:
        self.sum += tup.get_integer(1)

    def finish_batch(self) -> None:
        count, txid = DATABASE.get(self.key, (0, 0))
        if txid != self.attempt.transaction_id:
            DATABASE[self.key] = (count + self.sum, self.attempt.transaction_id)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare nothing."""


def global_count(
    topology_id: str,
    batch_tuples: int,
    *,
    partitions: int = 2,
    spouts: int = 2,
    counters: int = 2,
    one_by_one: bool = False,
) -> Topology:
    """Build the topology; `spouts` and `counters` are numbers of tasks.

    `batch_tuples` is what a batch holds in all, the same number in each partition.
    """
    assert batch_tuples % partitions == 0, (batch_tuples, partitions)
    spout = SyntheticSpout(partitions, batch_tuples // partitions, one_by_one=one_by_one)
    builder = TransactionalTopologyBuilder(topology_id, "spout", spout, spouts)
    builder.set_bolt("partial-count", BatchCount(), counters).none_grouping("spout")
    builder.set_bolt("sum", UpdateGlobalCount()).global_grouping("partial-count")
    return builder.build_topology()


def small_batches(topology_id: str) -> Topology:
    """Build GlobalCount with storm-starter's numbers: 3 partitions of 3 tuples, 3 spout tasks, 5 counting tasks."""
    return global_count(topology_id, 9, partitions=3, spouts=3, counters=5)


def stored(topology_id: str) -> int:
    """Return the tuples that the database holds for a topology."""
    return DATABASE.get(topology_id, (0, 0))[0]
