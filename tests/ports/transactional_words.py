"""storm-starter's TransactionalWords: two static maps, and two bolts downstream of a committer.

Where the original compares the stored txid with the whole attempt, which is never equal, this compares the txids.
"""

from stormline import (
    BaseBasicBolt,
    BaseTransactionalBolt,
    Config,
    Fields,
    ICommitter,
    MemoryTransactionalSpout,
    TransactionalTopologyBuilder,
    Values,
)

BUCKET_SIZE = 10
PARTITION_TAKE_PER_BATCH = 3
DATA = {
    0: ["cat", "dog", "chicken", "cat", "dog", "apple"],
    1: ["cat", "dog", "apple", "banana"],
    2: ["cat", "cat", "cat", "cat", "cat", "dog", "dog", "dog", "dog"],
}


class CountValue:
    prev_count = None
    count = 0
    txid = None


class BucketValue:
    count = 0
    txid = None


class TransactionalWords:
    COUNT_DATABASE = {}
    BUCKET_DATABASE = {}


class KeyedCountUpdater(BaseTransactionalBolt, ICommitter):
    def prepare(self, conf, context, collector, id):
        self._collector = collector
        self._id = id
        self._counts = {}

    def execute(self, tup):
        key = tup.get_string(1)
        self._counts[key] = self._counts.get(key, 0) + 1

    def finish_batch(self):
        for key in self._counts:
            val = TransactionalWords.COUNT_DATABASE.get(key)
            if val is None or val.txid != self._id.transaction_id:
                new_val = CountValue()
                new_val.txid = self._id.transaction_id
                if val is not None:
                    new_val.prev_count = val.count
                    new_val.count = val.count
                new_val.count += self._counts[key]
                TransactionalWords.COUNT_DATABASE[key] = new_val
            else:
                new_val = val
            self._collector.emit(Values(self._id, key, new_val.count, new_val.prev_count))

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("id", "key", "count", "prev-count"))


class Bucketize(BaseBasicBolt):
    def execute(self, tup, collector):
        attempt = tup.get_value(0)
        curr = tup.get_integer(2)
        prev = tup.get_integer(3)
        curr_bucket = curr // BUCKET_SIZE
        prev_bucket = None if prev is None else prev // BUCKET_SIZE
        if prev_bucket is None:
            collector.emit(Values(attempt, curr_bucket, 1))
        elif curr_bucket != prev_bucket:
            collector.emit(Values(attempt, curr_bucket, 1))
            collector.emit(Values(attempt, prev_bucket, -1))

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("attempt", "bucket", "delta"))


class BucketCountUpdater(BaseTransactionalBolt):
    def prepare(self, conf, context, collector, attempt):
        self._accum = {}
        self._collector = collector
        self._attempt = attempt

    def execute(self, tup):
        bucket, delta = tup.get_integer(1), tup.get_integer(2)
        self._accum[bucket] = self._accum.get(bucket, 0) + delta

    def finish_batch(self):
        for bucket, delta in self._accum.items():
            curr_val = TransactionalWords.BUCKET_DATABASE.get(bucket)
            if curr_val is None or curr_val.txid != self._attempt.transaction_id:
                new_val = BucketValue()
                new_val.txid = self._attempt.transaction_id
                new_val.count = delta if curr_val is None else curr_val.count + delta
                TransactionalWords.BUCKET_DATABASE[bucket] = new_val
            else:
                new_val = curr_val
            self._collector.emit(Values(self._attempt, bucket, new_val.count))

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("id", "bucket", "count"))


def topology():
    spout = MemoryTransactionalSpout(DATA, Fields("word"), PARTITION_TAKE_PER_BATCH)
    builder = TransactionalTopologyBuilder("top-n-words", "spout", spout, 2)
    builder.set_bolt("count", KeyedCountUpdater(), 5).fields_grouping("spout", Fields("word"))
    builder.set_bolt("bucketize", Bucketize()).none_grouping("count")
    builder.set_bolt("buckets", BucketCountUpdater(), 5).fields_grouping("bucketize", Fields("bucket"))
    return builder.build_topology()


config = Config()
config.set_max_spout_pending(3)
