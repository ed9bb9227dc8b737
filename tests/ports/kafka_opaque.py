"""A contributed opaque Kafka spout: where a broker does not answer, its partitions give nothing in this batch."""

import logging
from collections import Counter

from stormline import (
    BaseTransactionalBolt,
    Config,
    Fields,
    ICommitter,
    IOpaquePartitionedTransactionalSpout,
    TransactionalTopologyBuilder,
    Values,
)
from tests.ports.services.kafka import FailedFetch, SimpleConsumer

LOG = logging.getLogger(__name__)
HOSTS = ["kafka1", "kafka2"]
PARTITIONS_PER_HOST = 2
FETCH_MESSAGES = 7
DATABASE = {}


class OpaqueTransactionalKafkaSpout(IOpaquePartitionedTransactionalSpout):
    class Coordinator:
        def is_ready(self):
            return True

        def close(self):
            pass

    class Emitter:
        def __init__(self):
            self.connections = {}

        def num_partitions(self):
            return len(HOSTS) * PARTITIONS_PER_HOST

        def consumer(self, partition):
            if partition not in self.connections:
                host = HOSTS[partition % len(HOSTS)]
                self.connections[partition] = SimpleConsumer(host, partition // len(HOSTS))
            return self.connections[partition]

        def emit_partition_batch(self, attempt, collector, partition, last_meta):
            offset = 0 if last_meta is None else last_meta["nextOffset"]
            try:
                messages = self.consumer(partition).fetch(offset, FETCH_MESSAGES)
            except FailedFetch:
                LOG.info("no messages from partition %d, which does not answer", partition)
                return last_meta
            next_offset = offset
            for at, message in messages:
                collector.emit(Values(attempt, message))
                next_offset = at + 1
            return {"offset": offset, "nextOffset": next_offset}

        def close(self):
            for consumer in self.connections.values():
                consumer.close()

    def get_coordinator(self, conf, context):
        return self.Coordinator()

    def get_emitter(self, conf, context):
        return self.Emitter()

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("attempt", "message"))


class OpaqueValue:
    """As an opaque spout needs it: the value before this transaction, too."""

    def __init__(self, prev, current, txid):
        self.prev = prev
        self.current = current
        self.txid = txid


class CountMessages(BaseTransactionalBolt, ICommitter):
    def prepare(self, conf, context, collector, id):
        self.id = id
        self.counts = Counter()

    def execute(self, tup):
        self.counts[tup.get_string(1)] += 1

    def finish_batch(self):
        for message, count in self.counts.items():
            stored = DATABASE.get(message) or OpaqueValue(0, 0, 0)
            before = stored.prev if stored.txid == self.id.transaction_id else stored.current
            DATABASE[message] = OpaqueValue(before, before + count, self.id.transaction_id)


def topology():
    builder = TransactionalTopologyBuilder("opaque-kafka", "spout", OpaqueTransactionalKafkaSpout(), 2)
    builder.set_bolt("count", CountMessages(), 3).fields_grouping("spout", Fields("message"))
    return builder.build_topology()


config = Config()
config.set_max_spout_pending(4)
