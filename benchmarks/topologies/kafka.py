"""Topologies that read Kafka, or write to it."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.topologies.columnar import CountRows
from benchmarks.topologies.global_count import UpdateGlobalCount
from benchmarks.topologies.kafka_records import PARTITIONS, TYPES
from benchmarks.topologies.stored import counts
from benchmarks.topologies.synthetic import GATES, Gate, SyntheticSpout
from examples.global_count import BatchCount
from stormline import (
    BaseBasicBolt,
    Collector,
    Fields,
    OutputFieldsDeclarer,
    Topology,
    TopologyContext,
    TransactionalTopologyBuilder,
    Tuple,
)
from stormline.spouts.kafka import Json, KafkaTransactionalSpout, Text
from stormline.spouts.kafka.coordinator import KafkaCoordinator
from stormline.state import Count, Store, persistent_aggregate
from stormline.state.kafka import KafkaCommitter, KafkaSink
from stormline.topology.contracts import Conf, Metadata


class GatedCoordinator(KafkaCoordinator):
    """Gives as many batches as its topology's gate lets begin."""

    gate: Gate

    def is_ready_after(self, positions: Mapping[int, Metadata], batches_ahead: int) -> bool:
        # First whether the gate is open: the coordinator takes a yes to begin a batch.
        if self.gate.begun >= self.gate.allowed or not super().is_ready_after(positions, batches_ahead):
            return False
        return self.gate.is_ready()


class GatedKafkaSpout(KafkaTransactionalSpout):
    """The Kafka spout behind a gate."""

    def get_coordinator(self, conf: Conf, context: TopologyContext) -> GatedCoordinator:
        coordinator = GatedCoordinator(self._settings, self._cluster(context))
        coordinator.gate = GATES.setdefault(context.topology_id, Gate())
        return coordinator


def counted_records(topology_id: str, servers: str, topic: str, batch_records: int, *, batches: bool) -> Topology:
    """Build GlobalCount over five decoded fields: 2 spout tasks, 2 counting tasks, on rows or on record batches."""
    spout = GatedKafkaSpout(
        servers, topic, [*TYPES], value=Json(TYPES), records_per_partition=batch_records // PARTITIONS
    )
    builder = TransactionalTopologyBuilder(topology_id, "spout", spout, 2)
    builder.set_bolt("partial-count", CountRows() if batches else BatchCount(), 2).none_grouping("spout")
    builder.set_bolt("sum", UpdateGlobalCount()).global_grouping("partial-count")
    return builder.build_topology()


def counted_keys(
    topology_id: str, servers: str, topic: str, batch_records: int, store: Store, *, batches: bool
) -> Topology:
    """Build counts by key, by the ready committer: 2 tasks of each component, on rows or on record batches."""
    spout = GatedKafkaSpout(
        servers, topic, {"word": "key"}, key=Text(), records_per_partition=batch_records // PARTITIONS
    )
    builder = TransactionalTopologyBuilder(topology_id, "spout", spout, 2)
    persistent_aggregate(builder, "count", "spout", counts(store), {"count": Count()}, parallelism=2, batches=batches)
    return builder.build_topology()


def written_words(topology_id: str, servers: str, topic: str, batch_tuples: int) -> Topology:
    """Build a synthetic spout whose words the ready committer writes to Kafka."""
    builder = TransactionalTopologyBuilder(topology_id, "spout", SyntheticSpout(2, batch_tuples // 2), 2)
    committer = KafkaCommitter(KafkaSink(servers), topic, value="word")
    builder.set_bolt("out", committer).global_grouping("spout")
    return builder.build_topology()


class Mark(BaseBasicBolt):
    """Sets a letter before each value."""

    def execute(self, tup: Tuple, collector: Collector) -> None:
        collector.emit([tup.values[0], "t" + tup.get_string(1)])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("id", "value"))


def marked_records(topology_id: str, servers: str, source: str, target: str) -> Topology:
    """Build Kafka to Kafka: 2 spout tasks, 2 tasks that transform, one committer."""
    spout = KafkaTransactionalSpout(servers, source, ["value"], value=Text())
    builder = TransactionalTopologyBuilder(topology_id, "spout", spout, 2)
    builder.set_bolt("mark", Mark(), 2).none_grouping("spout")
    builder.set_bolt("out", KafkaCommitter(KafkaSink(servers), target)).global_grouping("mark")
    return builder.build_topology()
