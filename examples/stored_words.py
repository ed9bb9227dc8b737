"""`examples.global_count` and `examples.words` on the ready parts of `stormline.state`, in one database.

    spout (2 tasks) → total-partial → total (committer)
    spout           → words-partial → words (5 tasks, committer) → bucketize → buckets-partial → buckets (committer)

All that a transaction counts, the total, the words and the buckets, is one transaction of SQLite: whoever reads the
three tables sees numbers that fit together, and a replay changes none of them. `WORDS` is an `OpaqueMap`, since
`Bucketize` needs the count before as well.
"""

from __future__ import annotations

from examples.words import BUCKET_SIZE, DATA, PARTITION_TAKE_PER_BATCH, Bucketize
from stormline import Config, MemoryTransactionalSpout, Topology, TransactionalTopologyBuilder
from stormline.state import (
    Count,
    OpaqueMap,
    SnapshottableMap,
    SQLiteStore,
    Sum,
    TransactionalMap,
    persistent_aggregate,
)

STORE = SQLiteStore(".stormline/stored-words.sqlite")
TOTAL = SnapshottableMap(TransactionalMap(STORE, "totals", key={"name": str}, value={"count": int}), "words")
WORDS = OpaqueMap(STORE, "words", key={"word": str}, value={"count": int})
BUCKETS = TransactionalMap(STORE, "buckets", key={"bucket": int}, value={"words": int})


def topology() -> Topology:
    """Declare the topology."""
    spout = MemoryTransactionalSpout(DATA, ["word"], PARTITION_TAKE_PER_BATCH)
    builder = TransactionalTopologyBuilder("stored-words", "spout", spout, 2)
    persistent_aggregate(builder, "total", "spout", TOTAL, {"count": Count()})
    persistent_aggregate(builder, "words", "spout", WORDS, {"count": Count()}, parallelism=5)
    builder.set_bolt("bucketize", Bucketize()).none_grouping("words")
    persistent_aggregate(builder, "buckets", "bucketize", BUCKETS, {"words": Sum("delta")})
    return builder.build_topology()


config = Config()
config.set_max_spout_pending(3)


def report() -> str:
    """Return what the database holds."""
    words = sorted(WORDS.items().items(), key=lambda item: (-item[1], item[0]))
    lines = [f"{total} words in all" for total in TOTAL.map.items().values()]
    lines += [f"{word:<8} {count:>2}" for word, count in words]
    for bucket, count in sorted(BUCKETS.items().items()):
        low = bucket * BUCKET_SIZE
        lines.append(f"Words that occur {low} to {low + BUCKET_SIZE - 1} times: {count}")
    return "\n".join(lines)
