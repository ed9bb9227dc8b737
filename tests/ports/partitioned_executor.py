"""Storm's executor of partitioned spouts as a user's own spout: the emitter keeps each partition's state by txid.

What it keeps is needed for every replay, and `cleanup_before` is all that forgets: called too early, or with one too
many, a replay finds no state and cannot go on.
"""

from collections import Counter

from stormline import (
    BaseTransactionalBolt,
    Fields,
    ICommitter,
    ITransactionalSpout,
    TransactionalTopologyBuilder,
    Values,
)
from tests.ports.rotating_map import RotatingMap

PARTITIONS = {partition: [f"{partition}:{row}" for row in range(10 + 9 * partition)] for partition in range(5)}
TAKE = 4
DATABASE = {}


class RowsOfPartitions:
    """The partitioned spout within: begins where the last batch ended, and can give each batch again."""

    class Coordinator:
        def is_ready(self):
            return True

        def num_partitions(self):
            return len(PARTITIONS)

        def close(self):
            pass

    class Emitter:
        def emit_partition_batch_new(self, tx, collector, partition, last_meta):
            start = 0 if last_meta is None else last_meta["end"]
            meta = {"start": start, "end": min(start + TAKE, len(PARTITIONS[partition]))}
            self.emit_partition_batch(tx, collector, partition, meta)
            return meta

        def emit_partition_batch(self, tx, collector, partition, meta):
            for row in PARTITIONS[partition][meta["start"] : meta["end"]]:
                collector.emit(Values(tx, row))

        def close(self):
            pass


class PartitionedTransactionalSpoutExecutor(ITransactionalSpout):
    def __init__(self, spout):
        self.spout = spout

    class Coordinator:
        def __init__(self, coordinator):
            self._coordinator = coordinator

        def initialize_transaction(self, txid, prev_metadata):
            return self._coordinator.num_partitions()

        def is_ready(self):
            return self._coordinator.is_ready()

        def close(self):
            self._coordinator.close()

    class Emitter:
        def __init__(self, emitter, context):
            self._emitter = emitter
            self._partition_states = {}
            self._index = context.this_task_index
            self._num_tasks = len(context.component_tasks(context.this_component_id))

        def emit_batch(self, tx, partitions, collector):
            for partition in range(self._index, partitions, self._num_tasks):
                state = self._partition_states.setdefault(partition, RotatingMap())
                meta, existed = state.get_or_create(
                    tx.transaction_id,
                    lambda last, partition=partition: self._emitter.emit_partition_batch_new(
                        tx, collector, partition, last
                    ),
                )
                if existed and meta is not None:
                    self._emitter.emit_partition_batch(tx, collector, partition, meta)

        def cleanup_before(self, txid):
            for state in self._partition_states.values():
                state.cleanup_before(txid)

        def close(self):
            self._emitter.close()

    def get_coordinator(self, conf, context):
        return self.Coordinator(self.spout.Coordinator())

    def get_emitter(self, conf, context):
        return self.Emitter(self.spout.Emitter(), context)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("tx", "row"))


class CountRows(BaseTransactionalBolt, ICommitter):
    def prepare(self, conf, context, collector, id):
        self.id = id
        self.counts = Counter()

    def execute(self, tup):
        self.counts[tup.get_string(1)] += 1

    def finish_batch(self):
        for row, count in self.counts.items():
            stored, txid = DATABASE.get(row, (0, None))
            if txid != self.id.transaction_id:
                DATABASE[row] = (stored + count, self.id.transaction_id)


def topology():
    spout = PartitionedTransactionalSpoutExecutor(RowsOfPartitions)
    builder = TransactionalTopologyBuilder("partitioned-executor", "spout", spout, 2)
    builder.set_bolt("count", CountRows(), 2).fields_grouping("spout", Fields("row"))
    return builder.build_topology()
