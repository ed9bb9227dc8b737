"""Rows of three columns that are loaded into PostgreSQL by two-phase commit, into a table with a primary key."""

from __future__ import annotations

from benchmarks.topologies.synthetic import ROWS_AT_ONCE, SyntheticEmitter, SyntheticSpout, words
from stormline import Collector, Fields, OutputFieldsDeclarer, TopologyContext, TransactionalTopologyBuilder
from stormline import TransactionAttempt as Attempt
from stormline.state import PostgreSQLStore
from stormline.state.xa import PostgresTwoPhaseBolt
from stormline.topology.contracts import Conf, Metadata
from stormline.topology.topology import Topology

TABLE = "loads"
COLUMNS = ("id", "word", "amount")
CREATE = "CREATE TABLE loads (id bigint PRIMARY KEY, word text NOT NULL, amount double precision NOT NULL)"
PRICE = 0.25
"""The amount of row i is i times this."""


def first_row(batch: int, tasks: int, share: int, task: int) -> int:
    """Return the number of a task's first row in a batch, which begin at 0."""
    return (batch * tasks + task) * share


class RowsEmitter(SyntheticEmitter):
    """Emits numbered rows, made anew each time but for their words; the metadata counts the batches."""

    def __init__(self, partitions: int, partition_tuples: int) -> None:
        super().__init__(partition_tuples, one_by_one=False)
        self._partitions = partitions

    def emit_partition_batch(self, attempt: Attempt, collector: Collector, partition: int, metadata: Metadata) -> None:
        share = words(0, self.partition_tuples)
        first = first_row(metadata - 1, self._partitions, self.partition_tuples, partition)
        for begin in range(0, len(share), ROWS_AT_ONCE):
            numbered = enumerate(share[begin : begin + ROWS_AT_ONCE], first + begin)
            collector.emit_all([[attempt, i, word, PRICE * i] for i, word in numbered])


class RowsSpout(SyntheticSpout):
    """Rows (id, word, amount), made on the executors."""

    def get_emitter(self, conf: Conf, context: TopologyContext) -> RowsEmitter:
        return RowsEmitter(self._partitions, self.partition_tuples)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("tx", *COLUMNS))


def loaded(topology_id: str, store: PostgreSQLStore, batch_tuples: int, tasks: int) -> Topology:
    """Build spout and bolt of so many tasks: each loads its share of each batch by a connection of its own."""
    builder = TransactionalTopologyBuilder(topology_id, "spout", RowsSpout(tasks, batch_tuples // tasks), tasks)
    bolt = PostgresTwoPhaseBolt(store, TABLE)
    builder.set_bolt("load", bolt, tasks).local_or_shuffle_grouping("spout")
    return builder.build_topology()
