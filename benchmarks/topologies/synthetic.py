"""The synthetic spout: word i is `word%d` of i · 7919 mod 1,000, and a gate says how many batches there are."""

from __future__ import annotations

import time
from functools import lru_cache

from stormline import (
    Collector,
    Fields,
    IPartitionedTransactionalSpout,
    OutputFieldsDeclarer,
    TopologyContext,
    TransactionAttempt,
)
from stormline.topology.contracts import Conf, IPartitionedCoordinator, IPartitionedEmitter, Metadata

DISTINCT_WORDS = 1_000
STRIDE = 7_919  # coprime to DISTINCT_WORDS: any 1,000 words in a row are all there are

ROWS_AT_ONCE = 1_000
"""Tuples that the emitter makes for one emit_all."""


@lru_cache(maxsize=256)
def words(first: int, count: int) -> list[str]:
    """Return words `first` to `first + count - 1`; made once a process."""
    return [f"word{i * STRIDE % DISTINCT_WORDS}" for i in range(first, first + count)]


class Gate:
    """Says how many batches may begin, and notes when each was asked for. Lives in the driver process.

    `release` is called by the harness, `is_ready` by the topology's thread; only that one counts.
    """

    def __init__(self) -> None:
        self.allowed = 0
        self.begun = 0
        self.asked: list[float] = []

    def release(self, batches: int) -> None:
        """Let `batches` more begin. `asked` starts anew: when each of these was asked for and granted."""
        self.asked = []
        self.allowed += batches

    def is_ready(self) -> bool:
        """Return whether one more may begin; the answer true is taken to begin it."""
        if self.begun >= self.allowed:
            return False
        self.asked.append(time.perf_counter())
        self.begun += 1
        return True


GATES: dict[str, Gate] = {}
"""By topology id."""


class SyntheticCoordinator(IPartitionedCoordinator):
    """A number of partitions, behind the gate of its topology."""

    def __init__(self, partitions: int, gate: Gate) -> None:
        self._partitions = partitions
        self._gate = gate

    def num_partitions(self) -> int:
        return self._partitions

    def is_ready(self) -> bool:
        return self._gate.is_ready()


class SyntheticEmitter(IPartitionedEmitter):
    """Emits the same words in every batch; the metadata counts the batches."""

    def __init__(self, partition_tuples: int, one_by_one: bool) -> None:
        self.partition_tuples = partition_tuples
        self.one_by_one = one_by_one

    def emit_partition_batch_new(
        self, attempt: TransactionAttempt, collector: Collector, partition: int, last_metadata: Metadata
    ) -> Metadata:
        metadata = (last_metadata or 0) + 1
        self.emit_partition_batch(attempt, collector, partition, metadata)
        return metadata

    def emit_partition_batch(
        self, attempt: TransactionAttempt, collector: Collector, partition: int, metadata: Metadata
    ) -> None:
        share = words(partition * self.partition_tuples, self.partition_tuples)
        if self.one_by_one:
            emit = collector.emit
            for word in share:
                emit([attempt, word])
        else:
            for first in range(0, len(share), ROWS_AT_ONCE):
                collector.emit_all([[attempt, word] for word in share[first : first + ROWS_AT_ONCE]])


class SyntheticSpout(IPartitionedTransactionalSpout):
    """Emits on the executors: many tuples a call, or one."""

    emits_on_executors = True

    def __init__(self, partitions: int, partition_tuples: int, *, one_by_one: bool = False) -> None:
        self._partitions = partitions
        self._one_by_one = one_by_one
        self.partition_tuples = partition_tuples

    def get_coordinator(self, conf: Conf, context: TopologyContext) -> SyntheticCoordinator:
        return SyntheticCoordinator(self._partitions, GATES.setdefault(context.topology_id, Gate()))

    def get_emitter(self, conf: Conf, context: TopologyContext) -> SyntheticEmitter:
        return SyntheticEmitter(self.partition_tuples, self._one_by_one)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("tx", "word"))
