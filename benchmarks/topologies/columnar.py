"""GlobalCount and Words with columnar bolts, on a spout that emits record batches."""

from __future__ import annotations

from typing import Any

from benchmarks.topologies.columns import add_counts, count_words, counted_words, record_batch
from benchmarks.topologies.global_count import UpdateGlobalCount
from benchmarks.topologies.synthetic import SyntheticEmitter, SyntheticSpout
from benchmarks.topologies.words import CountWords
from stormline import (
    ArrowBatchBolt,
    Collector,
    Fields,
    ICommitter,
    OutputFieldsDeclarer,
    Topology,
    TopologyContext,
    TransactionalTopologyBuilder,
    TransactionAttempt,
)
from stormline.topology.contracts import Conf, Metadata


class ColumnarEmitter(SyntheticEmitter):
    """Emits a partition's share of a batch as one record batch."""

    def emit_partition_batch(
        self, attempt: TransactionAttempt, collector: Collector, partition: int, metadata: Metadata
    ) -> None:
        collector.emit_batch(record_batch(partition * self.partition_tuples, self.partition_tuples))


class ColumnarSpout(SyntheticSpout):
    """The synthetic spout, columnar."""

    def get_emitter(self, conf: Conf, context: TopologyContext) -> ColumnarEmitter:
        return ColumnarEmitter(self.partition_tuples, one_by_one=False)


class CountRows(ArrowBatchBolt):
    """Counts the rows of a batch."""

    def prepare(self, conf: Conf, context: TopologyContext, collector: Collector, batch_id: TransactionAttempt) -> None:
        self.collector, self.attempt, self.count = collector, batch_id, 0

    def execute_batch(self, batch: Any) -> None:
        self.count += batch.num_rows

    def finish_batch(self) -> None:
        self.collector.emit([self.attempt, self.count])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("id", "count"))


class CountBefore(ArrowBatchBolt):
    """Counts the words of a batch that reach one task, and passes on each word once with its count."""

    def prepare(self, conf: Conf, context: TopologyContext, collector: Collector, batch_id: TransactionAttempt) -> None:
        self.collector = collector

    def execute_batch(self, batch: Any) -> None:
        self.collector.emit_batch(counted_words(batch))

    def finish_batch(self) -> None:
        """Do nothing: all has been emitted."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("id", "word", "count"))


class CountColumns(ArrowBatchBolt, ICommitter):
    """Counts the words of a batch, and stores the counts when it commits, as the row bolt does."""

    gathers = ("counts",)
    counts: dict[str, int]

    prepare = CountWords.prepare
    finish_batch = CountWords.finish_batch
    declare_output_fields = CountWords.declare_output_fields

    def execute_batch(self, batch: Any) -> None:
        count_words(self.counts, batch)


class AddCounts(CountColumns):
    """Adds up what has been counted before."""

    def execute_batch(self, batch: Any) -> None:
        add_counts(self.counts, batch)


def columnar_global_count(topology_id: str, batch_tuples: int) -> Topology:
    """Build GlobalCount: 2 spout tasks, 2 columnar counting tasks, one committer of rows."""
    builder = TransactionalTopologyBuilder(topology_id, "spout", ColumnarSpout(2, batch_tuples // 2), 2)
    builder.set_bolt("partial-count", CountRows(), 2).none_grouping("spout")
    builder.set_bolt("sum", UpdateGlobalCount()).global_grouping("partial-count")
    return builder.build_topology()


def columnar_words(topology_id: str, batch_tuples: int) -> Topology:
    """Build Words: 2 spout tasks, 2 columnar counting tasks, which are committers."""
    builder = TransactionalTopologyBuilder(topology_id, "spout", ColumnarSpout(2, batch_tuples // 2), 2)
    builder.set_bolt("count", CountColumns(), 2).fields_grouping("spout", Fields("word"))
    return builder.build_topology()


def columnar_words_counted_before(topology_id: str, batch_tuples: int) -> Topology:
    """Build Words as one writes it by columns: 2 tasks count what reaches them, counts go through the grouping."""
    builder = TransactionalTopologyBuilder(topology_id, "spout", ColumnarSpout(2, batch_tuples // 2), 2)
    builder.set_bolt("partial-count", CountBefore(), 2).none_grouping("spout")
    builder.set_bolt("count", AddCounts(), 2).fields_grouping("partial-count", Fields("word"))
    return builder.build_topology()
