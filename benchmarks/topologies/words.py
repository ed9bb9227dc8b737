"""Words: a fields grouping to a committer with 2 tasks, which counts each word."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.topologies.synthetic import SyntheticSpout
from stormline import (
    BaseTransactionalBolt,
    Collector,
    Fields,
    ICommitter,
    OutputFieldsDeclarer,
    TopologyContext,
    TransactionalTopologyBuilder,
    TransactionAttempt,
    Tuple,
)
from stormline.topology.contracts import Conf
from stormline.topology.topology import Topology

DATABASE: dict[str, dict[str, tuple[int, int]]] = {}
"""By topology id, by word: the count, and the txid that stored it."""


class CountWords(BaseTransactionalBolt, ICommitter):
    """Counts the words of a batch as storm-starter's KeyedCountUpdater does, and stores the counts when it commits."""

    gathers: Sequence[str] | None = ("counts",)

    def prepare(self, conf: Conf, context: TopologyContext, collector: Collector, batch_id: TransactionAttempt) -> None:
        self.key, self.attempt = context.topology_id, batch_id
        self.counts: dict[str, int] = {}

    def execute(self, tup: Tuple) -> None:
        word = tup.get_string(1)
        self.counts[word] = self.counts.get(word, 0) + 1

    def finish_batch(self) -> None:
        database = DATABASE.setdefault(self.key, {})
        transaction_id = self.attempt.transaction_id
        for word, more in self.counts.items():
            count, txid = database.get(word, (0, 0))
            if txid != transaction_id:
                database[word] = (count + more, transaction_id)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare nothing."""


class CountWordsAtCommit(CountWords):
    """The same without a declaration: every tuple comes to the driver, and is counted there at the commit."""

    gathers = None


def words(topology_id: str, batch_tuples: int, *, partitions: int = 2, declared: bool = True) -> Topology:
    """Build the topology: 2 spout tasks, 2 counting tasks; they say what they gather where `declared`."""
    assert batch_tuples % partitions == 0, (batch_tuples, partitions)
    spout = SyntheticSpout(partitions, batch_tuples // partitions)
    builder = TransactionalTopologyBuilder(topology_id, "spout", spout, 2)
    counting = CountWords() if declared else CountWordsAtCommit()
    builder.set_bolt("count", counting, 2).fields_grouping("spout", Fields("word"))
    return builder.build_topology()


def stored(topology_id: str) -> int:
    """Return the tuples that the database holds for a topology."""
    return sum(count for count, _ in DATABASE.get(topology_id, {}).values())
