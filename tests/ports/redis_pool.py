"""A contributed Redis bolt: one pool for all bolts of a class, opened by whichever of them is prepared first."""

import threading

from stormline import (
    BaseTransactionalBolt,
    Fields,
    ICommitter,
    MemoryTransactionalSpout,
    TransactionalTopologyBuilder,
)
from tests.ports.services.redis import Pool

WORDS = ("the quick brown fox jumps over the lazy dog and the cow jumps over the moon " * 8).split()
TAKE_PER_BATCH = 9


class RedisBolt(BaseTransactionalBolt):
    pool = None
    opening = threading.Lock()

    def __init__(self, host):
        self.host = host

    def prepare(self, conf, context, collector, id):
        self.id = id
        with RedisBolt.opening:
            if RedisBolt.pool is None:
                RedisBolt.pool = Pool(self.host)


class WordCountBolt(RedisBolt, ICommitter):
    def prepare(self, conf, context, collector, id):
        super().prepare(conf, context, collector, id)
        self.counts = {}

    def execute(self, tup):
        word = tup.get_string_by_field("word")
        self.counts[word] = self.counts.get(word, 0) + 1

    def finish_batch(self):
        with self.pool.resource() as redis:
            for word, count in self.counts.items():
                if redis.hget("txids", word) != self.id.transaction_id:
                    multi = redis.multi()
                    multi.hset("txids", word, self.id.transaction_id)
                    multi.hincrby("words", word, count)
                    multi.exec()


def topology():
    words = {0: WORDS[::3], 1: WORDS[1::3], 2: WORDS[2::3]}
    builder = TransactionalTopologyBuilder(
        "redis-words", "spout", MemoryTransactionalSpout(words, Fields("word"), TAKE_PER_BATCH), 3
    )
    builder.set_bolt("count", WordCountBolt("localhost"), 4).fields_grouping("spout", Fields("word"))
    return builder.build_topology()
