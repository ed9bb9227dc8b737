"""Committed transactions a second of GlobalCount, three tuples a partition, by topology.max.spout.pending.

    python -m benchmarks.waves [--repeats 3] [--secs 8]

One Spark and one embedded ZooKeeper serve all runs; the settings take turns, and the median of each is shown with
its ratio to pending 1. The spout makes its tuples up, so the engine is what is measured.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

from stormline import (
    BaseBatchBolt,
    BaseTransactionalBolt,
    Fields,
    ICommitter,
    IPartitionedTransactionalSpout,
    LocalCluster,
    TransactionalTopologyBuilder,
)
from stormline.topology.topology import Topology

PENDING = (1, 64, 256)
PARTITIONS = 3
TUPLES_A_PARTITION = 3


class Coordinator:
    """Always ready."""

    def is_ready(self) -> bool:
        return True

    def num_partitions(self) -> int:
        return PARTITIONS

    def close(self) -> None: ...


class Emitter:
    """Makes tuples up."""

    def emit_partition_batch_new(self, attempt: Any, collector: Any, partition: int, last_metadata: Any) -> Any:
        metadata = (last_metadata or 0) + TUPLES_A_PARTITION
        self.emit_partition_batch(attempt, collector, partition, metadata)
        return metadata

    def emit_partition_batch(self, attempt: Any, collector: Any, partition: int, metadata: Any) -> None:
        for _ in range(TUPLES_A_PARTITION):
            collector.emit([attempt, "word"])

    def close(self) -> None: ...


class EndlessSpout(IPartitionedTransactionalSpout):
    """A spout that is never drained."""

    def get_coordinator(self, conf: Any, context: Any) -> Any:
        return Coordinator()

    def get_emitter(self, conf: Any, context: Any) -> Any:
        return Emitter()

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "word"))


class BatchCount(BaseBatchBolt):
    """Counts a batch."""

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        self.collector, self.attempt, self.count = collector, batch_id, 0

    def execute(self, tup: Any) -> None:
        self.count += 1

    def finish_batch(self) -> None:
        self.collector.emit([self.attempt, self.count])

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "count"))


DATABASE: dict[str, tuple[int, int]] = {}


class UpdateGlobalCount(BaseTransactionalBolt, ICommitter):
    """Adds a batch's counts to the stored one, by the txid beside it."""

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        self.topology, self.attempt, self.sum = context.topology_id, batch_id, 0

    def execute(self, tup: Any) -> None:
        self.sum += tup[1]

    def finish_batch(self) -> None:
        count, txid = DATABASE.get(self.topology, (0, 0))
        if txid != self.attempt.transaction_id:
            DATABASE[self.topology] = (count + self.sum, self.attempt.transaction_id)

    def declare_output_fields(self, declarer: Any) -> None: ...


def global_count(topology_id: str) -> Topology:
    """Build GlobalCount as storm-starter has it: 3 spout tasks, 5 counting tasks, one committer."""
    builder = TransactionalTopologyBuilder(topology_id, "spout", EndlessSpout(), 3)
    builder.set_bolt("partial-count", BatchCount(), 5).none_grouping("spout")
    builder.set_bolt("sum", UpdateGlobalCount()).global_grouping("partial-count")
    return builder.build_topology()


def measure(cluster: LocalCluster, pending: int, run: int, secs: float) -> float:
    """Return committed transactions a second, from the first wave's end on."""
    topology = global_count(f"waves-{pending}-{run}")
    handle = cluster.submit_topology(topology.id, {"topology.max.spout.pending": pending}, topology)
    handle.await_committed(pending, 120)
    first, begun = handle.txid_committed, time.perf_counter()
    time.sleep(secs)
    rate = (handle.txid_committed - first) / (time.perf_counter() - begun)
    handle.kill()
    count, txid = DATABASE[topology.id]
    assert count == txid * PARTITIONS * TUPLES_A_PARTITION, (count, txid)
    return rate


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--secs", type=float, default=8.0)
    args = parser.parse_args()
    rates: dict[int, list[float]] = {pending: [] for pending in PENDING}
    with LocalCluster() as cluster:
        for run in range(args.repeats):
            for pending in PENDING:
                rates[pending].append(measure(cluster, pending, run, args.secs))
    base = statistics.median(rates[PENDING[0]])
    print("pending  transactions/s (median, min to max)   ratio to pending 1")
    for pending in PENDING:
        median = statistics.median(rates[pending])
        low, high = min(rates[pending]), max(rates[pending])
        print(f"{pending:7}  {median:9.1f}  ({low:.1f} to {high:.1f})   {median / base:.1f}")


if __name__ == "__main__":
    main()
