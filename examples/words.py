"""storm-starter's TransactionalWords: how often each word occurs, and how many words occur 0–9 times, 10–19 times, …

    spout (2 tasks) → count (5 tasks, committer) → bucketize → buckets (5 tasks)

`KeyedCountUpdater` is a committer: it stores each word's count in the commit phase, with the count before and the
txid, and emits both counts. `Bucketize` turns a pair of counts into moves between buckets of ten, and
`BucketCountUpdater` stores how many words each bucket holds. These two stand downstream of a committer, so they run in
the same commit phase, after it, though neither of them is a committer.

For porters: the stored previous count lets a replay emit what the first attempt emitted, also where that one stored the
words and not the buckets. storm-starter's KeyedCountUpdater compares the stored txid with the whole attempt, which is
never equal, so it counts a replayed batch twice; this port compares the txids.

As in `examples.global_count`, the two databases are dicts of the driver process and end with it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from stormline import (
    BaseBasicBolt,
    BaseTransactionalBolt,
    Collector,
    Conf,
    Config,
    Fields,
    ICommitter,
    MemoryTransactionalSpout,
    OutputFieldsDeclarer,
    Topology,
    TopologyContext,
    TransactionalTopologyBuilder,
    TransactionAttempt,
    Tuple,
    Values,
)

BUCKET_SIZE = 10
PARTITION_TAKE_PER_BATCH = 3
DATA = {
    0: ["cat", "dog", "chicken", "cat", "dog", "apple"],
    1: ["cat", "dog", "apple", "banana"],
    2: ["cat", "cat", "cat", "cat", "cat", "dog", "dog", "dog", "dog"],
}


@dataclass(frozen=True)
class CountValue:
    """A word's count, the one before (None: the word is new), and the transaction that stored them."""

    count: int
    prev_count: int | None
    txid: int


@dataclass(frozen=True)
class BucketValue:
    """How many words a bucket holds, and the transaction that stored it."""

    count: int
    txid: int


COUNT_DATABASE: dict[str, CountValue] = {}
BUCKET_DATABASE: dict[int, BucketValue] = {}


class KeyedCountUpdater(BaseTransactionalBolt, ICommitter):
    """Stores the count of each word; the fields grouping brings all tuples of one word to one task."""

    gathers = ("counts",)

    def prepare(self, conf: Conf, context: TopologyContext, collector: Collector, batch_id: TransactionAttempt) -> None:
        self.collector = collector
        self.id = batch_id
        self.counts: Counter[str] = Counter()

    def execute(self, tup: Tuple) -> None:
        self.counts[tup.get_string(1)] += 1

    def finish_batch(self) -> None:
        txid = self.id.transaction_id
        for word, count in self.counts.items():
            value = COUNT_DATABASE.get(word)
            if value is None or value.txid != txid:
                prev_count = value.count if value else None
                value = CountValue((prev_count or 0) + count, prev_count, txid)
                COUNT_DATABASE[word] = value
            self.collector.emit(Values(self.id, word, value.count, value.prev_count))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("id", "key", "count", "prev-count"))


class Bucketize(BaseBasicBolt):
    """Emits +1 for the bucket that a word enters and -1 for the one that it leaves."""

    def execute(self, tup: Tuple, collector: Collector) -> None:
        attempt, _, count, prev_count = tup
        bucket = count // BUCKET_SIZE
        prev_bucket = None if prev_count is None else prev_count // BUCKET_SIZE
        if bucket != prev_bucket:
            collector.emit(Values(attempt, bucket, 1))
            if prev_bucket is not None:
                collector.emit(Values(attempt, prev_bucket, -1))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("attempt", "bucket", "delta"))


class BucketCountUpdater(BaseTransactionalBolt):
    """Stores how many words each bucket holds."""

    gathers = ("deltas",)

    def prepare(self, conf: Conf, context: TopologyContext, collector: Collector, batch_id: TransactionAttempt) -> None:
        self.collector = collector
        self.attempt = batch_id
        self.deltas: Counter[int] = Counter()

    def execute(self, tup: Tuple) -> None:
        self.deltas[tup.get_integer(1)] += tup.get_integer(2)

    def finish_batch(self) -> None:
        txid = self.attempt.transaction_id
        for bucket, delta in self.deltas.items():
            value = BUCKET_DATABASE.get(bucket)
            if value is None or value.txid != txid:
                value = BucketValue(delta + (value.count if value else 0), txid)
                BUCKET_DATABASE[bucket] = value
            self.collector.emit(Values(self.attempt, bucket, value.count))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("id", "bucket", "count"))


def topology() -> Topology:
    """Declare the topology."""
    spout = MemoryTransactionalSpout(DATA, Fields("word"), PARTITION_TAKE_PER_BATCH)
    builder = TransactionalTopologyBuilder("top-n-words", "spout", spout, 2)
    builder.set_bolt("count", KeyedCountUpdater(), 5).fields_grouping("spout", Fields("word"))
    builder.set_bolt("bucketize", Bucketize()).none_grouping("count")
    builder.set_bolt("buckets", BucketCountUpdater(), 5).fields_grouping("bucketize", Fields("bucket"))
    return builder.build_topology()


config = Config()
config.set_max_spout_pending(3)


def report() -> str:
    """Return the counts and the buckets."""
    if not COUNT_DATABASE:
        return (
            "This run committed nothing in this process: an earlier one on the same state directory has counted all "
            "there is, and its databases, two dicts, ended with it; or commits were placed on the executors."
        )
    words = sorted(COUNT_DATABASE.items(), key=lambda item: (-item[1].count, item[0]))
    lines = [f"{word:<8} {value.count:>2}  (stored by transaction {value.txid})" for word, value in words]
    for bucket, words_in_it in sorted(BUCKET_DATABASE.items()):
        low = bucket * BUCKET_SIZE
        lines.append(f"Words that occur {low} to {low + BUCKET_SIZE - 1} times: {words_in_it.count}")
    return "\n".join(lines)
