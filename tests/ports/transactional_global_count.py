"""storm-starter's TransactionalGlobalCount: a static map as the database, one value in it with its transaction id."""

from stormline import (
    BaseBatchBolt,
    BaseTransactionalBolt,
    Config,
    Fields,
    ICommitter,
    MemoryTransactionalSpout,
    TransactionalTopologyBuilder,
    Values,
)

PARTITION_TAKE_PER_BATCH = 3
DATA = {
    0: ["cat", "dog", "chicken", "cat", "dog", "apple"],
    1: ["cat", "dog", "apple", "banana"],
    2: ["cat", "cat", "cat", "cat", "cat", "dog", "dog", "dog", "dog"],
}


class Value:
    count = 0
    txid = None


class TransactionalGlobalCount:
    DATABASE = {}
    GLOBAL_COUNT_KEY = "GLOBAL-COUNT"

    class BatchCount(BaseBatchBolt):
        def prepare(self, conf, context, collector, id):
            self._collector = collector
            self._id = id
            self._count = 0

        def execute(self, tup):
            self._count += 1

        def finish_batch(self):
            self._collector.emit(Values(self._id, self._count))

        def declare_output_fields(self, declarer):
            declarer.declare(Fields("id", "count"))

    class UpdateGlobalCount(BaseTransactionalBolt, ICommitter):
        def prepare(self, conf, context, collector, attempt):
            self._collector = collector
            self._attempt = attempt
            self._sum = 0

        def execute(self, tup):
            self._sum += tup.get_integer(1)

        def finish_batch(self):
            database, key = TransactionalGlobalCount.DATABASE, TransactionalGlobalCount.GLOBAL_COUNT_KEY
            val = database.get(key)
            if val is None or val.txid != self._attempt.transaction_id:
                newval = Value()
                newval.txid = self._attempt.transaction_id
                newval.count = self._sum if val is None else self._sum + val.count
                database[key] = newval
            else:
                newval = val
            self._collector.emit(Values(self._attempt, newval.count))

        def declare_output_fields(self, declarer):
            declarer.declare(Fields("id", "sum"))


def topology():
    spout = MemoryTransactionalSpout(DATA, Fields("word"), PARTITION_TAKE_PER_BATCH)
    builder = TransactionalTopologyBuilder("global-count", "spout", spout, 3)
    builder.set_bolt("partial-count", TransactionalGlobalCount.BatchCount(), 5).none_grouping("spout")
    builder.set_bolt("sum", TransactionalGlobalCount.UpdateGlobalCount()).global_grouping("partial-count")
    return builder.build_topology()


config = Config()
config.set_debug(False)
config.set_max_spout_pending(3)
