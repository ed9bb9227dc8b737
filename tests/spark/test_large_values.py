"""Rows of 10 MB: where they are exchanged, where they come to a commit, and where the driver emits them."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from pyspark import SparkContext

from stormline import (
    BaseBatchBolt,
    BasePartitionedTransactionalSpout,
    BaseTransactionalBolt,
    Fields,
    ICommitter,
    LocalCluster,
    TransactionalTopologyBuilder,
    TransactionAttempt,
)
from stormline.runtime.errors import TopologyFailed
from stormline.topology.topology import Topology

pytestmark = pytest.mark.proof

ROW_BYTES = 10_000_000
COUNTED: defaultdict[str, dict[int, int]] = defaultdict(dict)
CONFIG = {"topology.max.spout.pending": 8, "topology.message.timeout.secs": 300}


class Coordinator:
    def num_partitions(self) -> int:
        return 2

    def is_ready(self) -> bool:
        return True


class Emitter:
    def __init__(self, rows: int) -> None:
        self.rows = rows

    def emit_partition_batch_new(self, attempt: Any, collector: Any, partition: int, last: Any) -> int:
        number = 0 if last is None else last + 1
        self.emit_partition_batch(attempt, collector, partition, number)
        return number

    def emit_partition_batch(self, attempt: Any, collector: Any, partition: int, number: int) -> None:
        for row in range(self.rows):
            collector.emit([attempt, row, bytes([row % 251]) * ROW_BYTES])


class Large(BasePartitionedTransactionalSpout):
    """Emits so many rows of 10 MB from each of two partitions in every batch."""

    def __init__(self, rows: int, on_executors: bool) -> None:
        self.rows = rows
        self.emits_on_executors = on_executors

    def get_coordinator(self, conf: Any, context: Any) -> Any:
        return Coordinator()

    def get_emitter(self, conf: Any, context: Any) -> Any:
        return Emitter(self.rows)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "key", "blob"))


class Bytes(BaseBatchBolt):
    """Counts the bytes of a batch, and commits nothing."""

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        self.collector, self.attempt, self.bytes = collector, batch_id, 0

    def execute(self, tup: Any) -> None:
        self.bytes += len(tup["blob"])

    def finish_batch(self) -> None:
        self.collector.emit([self.attempt, self.bytes])

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "bytes"))


class Sum(BaseTransactionalBolt, ICommitter):
    """Adds the bytes up, of counts or of the rows themselves."""

    def __init__(self, name: str) -> None:
        self.name = name

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        self.attempt, self.bytes = batch_id, 0

    def execute(self, tup: Any) -> None:
        value = tup[len(tup) - 1]
        self.bytes += value if isinstance(value, int) else len(value)

    def finish_batch(self) -> None:
        COUNTED[self.name][self.attempt.transaction_id] = self.bytes

    def declare_output_fields(self, declarer: Any) -> None:
        pass


def counted(name: str, rows: int, on_executors: bool) -> Topology:
    builder = TransactionalTopologyBuilder(name, "spout", Large(rows, on_executors), 2)
    builder.set_bolt("bytes", Bytes(), 4).fields_grouping("spout", Fields("key"))
    builder.set_bolt("sum", Sum(name)).global_grouping("bytes")
    return builder.build_topology()


def committed(name: str, rows: int) -> Topology:
    builder = TransactionalTopologyBuilder(name, "spout", Large(rows, on_executors=True), 2)
    builder.set_bolt("sum", Sum(name)).global_grouping("spout")
    return builder.build_topology()


@pytest.fixture
def cluster(spark: SparkContext) -> Any:
    with LocalCluster() as made:
        yield made


def run(cluster: LocalCluster, topology: Topology, transactions: int, rows: int) -> None:
    handle = cluster.submit_topology(topology.id, CONFIG, topology)
    handle.await_committed(transactions, 280)
    handle.kill()
    got = {txid: size for txid, size in COUNTED[topology.id].items() if txid <= transactions}
    assert got == dict.fromkeys(range(1, transactions + 1), 2 * rows * ROW_BYTES)
    assert handle.error is None


def test_a_batch_of_a_hundred_rows_of_ten_megabytes_is_exchanged(cluster: LocalCluster) -> None:
    run(cluster, counted("large-exchanged", 50, on_executors=True), 1, 50)


def test_such_rows_that_the_driver_emits_are_exchanged_in_waves_that_have_room(
    cluster: LocalCluster, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", "stormline"):
        run(cluster, counted("large-driver", 10, on_executors=False), 4, 10)
    assert "its wave has no room for it beside those before it" in caplog.text


def test_such_rows_come_to_their_commits_in_waves_that_have_room(cluster: LocalCluster) -> None:
    run(cluster, committed("large-committed", 4), 6, 4)


def test_a_batch_that_does_not_fit_is_told_of_in_one_sentence(cluster: LocalCluster) -> None:
    topology = committed("too-large", 30)
    handle = cluster.submit_topology(topology.id, CONFIG, topology)
    with pytest.raises(
        TopologyFailed,
        match=r"^topology 'too-large' stopped: 'sum' is to get more than the [\d,]+ bytes that go to or from Spark "
        r"at a time here of one batch at its commit; aggregate before it, declare what it gathers",
    ):
        handle.await_committed(1, 280)
    assert COUNTED["too-large"] == {}


def test_a_batch_that_the_driver_emits_and_that_does_not_fit_is_told_of_too(cluster: LocalCluster) -> None:
    topology = counted("too-large-driver", 40, on_executors=False)
    handle = cluster.submit_topology(topology.id, CONFIG, topology)
    with pytest.raises(
        TopologyFailed,
        match=r"the emitters of 'spout', in the driver, give one batch more than the [\d,]+ bytes that .*; make "
        r"batches smaller, set emits_on_executors = True where",
    ):
        handle.await_committed(1, 280)
