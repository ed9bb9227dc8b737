"""Storm's executor of opaque spouts as a user's own committer spout.

What a batch ended at is cached while it is under way, and becomes the partition's state in `commit`; the next batch
begins at what the one before has cached, or else at the newest state.
"""

from collections import Counter

from stormline import (
    BaseTransactionalBolt,
    Fields,
    ICommitter,
    ICommitterTransactionalSpout,
    ITransactionalSpout,
    TransactionalTopologyBuilder,
    Values,
)
from tests.ports.rotating_map import RotatingMap

PARTITIONS = {partition: [f"{partition}:{row}" for row in range(30 - 7 * partition)] for partition in range(4)}
TAKE = 4
DATABASE = {}


class Rows:
    """The opaque spout within: gives what there is from where the last batch ended."""

    class Coordinator:
        def is_ready(self):
            return True

        def close(self):
            pass

    class Emitter:
        def num_partitions(self):
            return len(PARTITIONS)

        def emit_partition_batch(self, tx, collector, partition, last_meta):
            start = 0 if last_meta is None else last_meta
            rows = PARTITIONS[partition][start : start + TAKE]
            for row in rows:
                collector.emit(Values(tx, row))
            return start + len(rows)

        def close(self):
            pass


class OpaquePartitionedTransactionalSpoutExecutor(ITransactionalSpout, ICommitterTransactionalSpout):
    def __init__(self, spout):
        self.spout = spout

    class Coordinator:
        def __init__(self, coordinator):
            self._coordinator = coordinator

        def initialize_transaction(self, txid, prev_metadata):
            return None

        def is_ready(self):
            return self._coordinator.is_ready()

        def close(self):
            self._coordinator.close()

    class Emitter:
        def __init__(self, emitter, context):
            self._emitter = emitter
            self._cached_metas = {}
            self._partition_states = {}
            self._index = context.this_task_index
            self._num_tasks = len(context.component_tasks(context.this_component_id))

        def emit_batch(self, tx, coordinator_meta, collector):
            txid = tx.transaction_id
            metas = self._cached_metas[txid] = {}
            earlier = [cached for cached in self._cached_metas if cached < txid]
            prev_cached = self._cached_metas[max(earlier)] if earlier else {}
            for partition in range(self._index, self._emitter.num_partitions(), self._num_tasks):
                state = self._partition_states.setdefault(partition, RotatingMap())
                state.remove(txid)
                last_meta = prev_cached.get(partition)
                if last_meta is None:
                    last_meta = state.last()
                metas[partition] = self._emitter.emit_partition_batch(tx, collector, partition, last_meta)

        def cleanup_before(self, txid):
            for state in self._partition_states.values():
                state.cleanup_before(txid)

        def commit(self, attempt):
            for partition, meta in self._cached_metas.pop(attempt.transaction_id).items():
                self._partition_states[partition].override(attempt.transaction_id, meta)

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
    spout = OpaquePartitionedTransactionalSpoutExecutor(Rows)
    builder = TransactionalTopologyBuilder("opaque-executor", "spout", spout, 2)
    builder.set_bolt("count", CountRows(), 3).fields_grouping("spout", Fields("row"))
    return builder.build_topology()
