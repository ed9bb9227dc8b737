"""A contributed transactional Kafka spout: one emitter a task with a connection for each partition, metadata as maps.

Its coordinator is always ready, so batches follow for ever, empty ones too. Partition p is partition p // hosts of host
p % hosts. A map says where a batch begins and where the next one does.
"""

from collections import Counter

from stormline import (
    BaseTransactionalBolt,
    Config,
    FailedException,
    Fields,
    ICommitter,
    IPartitionedTransactionalSpout,
    TransactionalTopologyBuilder,
    Values,
)
from tests.ports.services.kafka import FailedFetch, SimpleConsumer

HOSTS = ["kafka1", "kafka2"]
PARTITIONS_PER_HOST = 2
FETCH_MESSAGES = 7
DATABASE = {}


class KafkaConfig:
    def __init__(self, hosts, partitions_per_host, fetch_messages):
        self.hosts = hosts
        self.partitions_per_host = partitions_per_host
        self.fetch_messages = fetch_messages


class KafkaPartitionConnections:
    """Connections, opened when a partition is first asked for."""

    def __init__(self, config):
        self.config = config
        self.connections = {}

    def consumer(self, partition):
        if partition not in self.connections:
            host = self.config.hosts[partition % len(self.config.hosts)]
            self.connections[partition] = SimpleConsumer(host, partition // len(self.config.hosts))
        return self.connections[partition]

    def close(self):
        for consumer in self.connections.values():
            consumer.close()


def fetch(consumer, offset, messages_max):
    try:
        return consumer.fetch(offset, messages_max)
    except FailedFetch as error:
        raise FailedException("the broker did not answer") from error


class TransactionalKafkaSpout(IPartitionedTransactionalSpout):
    def __init__(self, config):
        self.config = config

    def get_coordinator(self, conf, context):
        return Coordinator(self.config)

    def get_emitter(self, conf, context):
        return Emitter(self.config)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("attempt", "message"))


class Coordinator:
    def __init__(self, config):
        self.config = config

    def num_partitions(self):
        return len(self.config.hosts) * self.config.partitions_per_host

    def is_ready(self):
        return True

    def close(self):
        pass


class Emitter:
    def __init__(self, config):
        self.config = config
        self.connections = KafkaPartitionConnections(config)

    def emit_partition_batch_new(self, attempt, collector, partition, last_meta):
        offset = 0 if last_meta is None else last_meta["nextOffset"]
        next_offset = offset
        for at, message in fetch(self.connections.consumer(partition), offset, self.config.fetch_messages):
            collector.emit(Values(attempt, message))
            next_offset = at + 1
        return {"offset": offset, "nextOffset": next_offset}

    def emit_partition_batch(self, attempt, collector, partition, meta):
        count = meta["nextOffset"] - meta["offset"]
        if count == 0:
            return
        messages = fetch(self.connections.consumer(partition), meta["offset"], self.config.fetch_messages)
        for at, message in messages:
            if at == meta["nextOffset"]:
                break
            collector.emit(Values(attempt, message))

    def close(self):
        self.connections.close()


class CountMessages(BaseTransactionalBolt, ICommitter):
    def prepare(self, conf, context, collector, id):
        self.id = id
        self.counts = Counter()

    def execute(self, tup):
        self.counts[tup.get_string(1)] += 1

    def finish_batch(self):
        for message, count in self.counts.items():
            stored, txid = DATABASE.get(message, (0, None))
            if txid != self.id.transaction_id:
                DATABASE[message] = (stored + count, self.id.transaction_id)


def topology():
    spout = TransactionalKafkaSpout(KafkaConfig(HOSTS, PARTITIONS_PER_HOST, FETCH_MESSAGES))
    builder = TransactionalTopologyBuilder("kafka", "spout", spout, 3)
    builder.set_bolt("count", CountMessages(), 5).fields_grouping("spout", Fields("message"))
    return builder.build_topology()


config = Config()
config.set_max_spout_pending(4)
