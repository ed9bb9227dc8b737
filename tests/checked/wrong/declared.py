"""Declarations that the code does not keep to: `gathers`, and `emits_on_executors`."""

from collections import Counter

from stormline import BaseTransactionalBolt, Fields, ICommitter, IPartitionedTransactionalSpout
from stormline import TransactionalTopologyBuilder as Builder

SEEN = {}


class Positions(IPartitionedTransactionalSpout):
    emits_on_executors = True

    def get_coordinator(self, conf, context):
        return Coordinator()

    def get_emitter(self, conf, context):
        return Emitter(conf)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("tx", "word"))


class Coordinator:
    def num_partitions(self):
        return 1

    def is_ready(self):
        return True

    def close(self):
        pass


class Emitter:
    def __init__(self, conf):
        self.offset = 0
        self.last = None
        self.buffer = []
        self.source = None

    def emit_partition_batch_new(self, attempt, collector, partition, last):
        if self.source is None:
            self.source = open("words.txt")
        self.rows = self.source.readlines()
        if self.last == partition:
            return last
        self.offset += len(self.rows)  # ! emitter-state
        self.last = partition  # ! emitter-state
        self.buffer.append(partition)  # ! emitter-state
        SEEN[partition] = attempt.transaction_id  # ! emitter-state
        return [self.offset]

    def emit_partition_batch(self, attempt, collector, partition, metadata):
        self.rows = self.source.readlines()
        for row in self.rows:
            collector.emit([attempt, row])

    def close(self):
        pass


class Gathering(BaseTransactionalBolt, ICommitter):
    gathers = ("counts",)

    def prepare(self, conf, context, collector, batch_id):
        self.txid = batch_id.transaction_id
        self.counts, self.words, self.rows = Counter(), [], 0

    def execute(self, tup):
        word = tup[1]
        self.counts[word] += 1
        self.rows += 1  # ! beside-gathers
        self.words.append(word)  # ! beside-gathers
        SEEN[word] = True  # ! beside-gathers

    def finish_batch(self):
        if SEEN.get("txid") != self.txid:
            print(self.counts, self.words, self.rows)


def topology():
    builder = Builder("declared", "words", Positions(), 1)
    builder.set_bolt("gathering", Gathering()).global_grouping("words")
    return builder
