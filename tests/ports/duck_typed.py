"""A partitioned spout whose coordinator and emitter inherit nothing, and have only the methods that do something."""

from stormline import (
    BaseTransactionalBolt,
    Fields,
    ICommitter,
    IPartitionedTransactionalSpout,
    TransactionalTopologyBuilder,
    Values,
)

FILES = {
    "a.log": [f"a{line}" for line in range(25)],
    "b.log": [f"b{line}" for line in range(40)],
    "c.log": [f"c{line}" for line in range(7)],
}
LINES = 6
BATCHES = 7
SEEN = {}


class Files:
    def __init__(self):
        self.begun = 0

    def is_ready(self):
        return self.begun < BATCHES

    def num_partitions(self):
        self.begun += 1
        return len(FILES)


class Lines:
    def emit_partition_batch_new(self, tx, collector, partition, last):
        start = last[1] if last else 0
        meta = [start, start + LINES]
        self.emit_partition_batch(tx, collector, partition, meta)
        return meta

    def emit_partition_batch(self, tx, collector, partition, meta):
        for line in FILES[sorted(FILES)[partition]][meta[0] : meta[1]]:
            collector.emit(Values(tx, line))


class LogSpout(IPartitionedTransactionalSpout):
    def get_coordinator(self, conf, context):
        return Files()

    def get_emitter(self, conf, context):
        return Lines()

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("tx", "line"))


class Remember(BaseTransactionalBolt, ICommitter):
    def prepare(self, conf, context, collector, id):
        self.id = id
        self.lines = []

    def execute(self, tup):
        self.lines.append(tup.get_string(1))

    def finish_batch(self):
        SEEN.setdefault(self.id.transaction_id, self.lines)


def topology():
    builder = TransactionalTopologyBuilder("logs", "spout", LogSpout(), 2)
    builder.set_bolt("remember", Remember()).global_grouping("spout")
    return builder.build_topology()
