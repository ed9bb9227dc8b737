"""Spouts as they are ported: nested interfaces, Storm's base classes, Storm's order of arguments and getters."""

from __future__ import annotations

from typing import Any

import pytest

from stormline import (
    BaseOpaquePartitionedTransactionalSpout,
    BasePartitionedTransactionalSpout,
    BaseTransactionalBolt,
    BaseTransactionalSpout,
    Fields,
    ICommitter,
    ICommitterTransactionalSpout,
    IOpaquePartitionedTransactionalSpout,
    IPartitionedTransactionalSpout,
    ITransactionalSpout,
    TransactionalTopologyBuilder,
    Values,
)
from stormline.testing import InProcessCluster

BATCHES = [["cat", "dog"], ["cat"], ["ox", "cat"]]
COUNTS: dict[str, dict[str, int]] = {}
COMMITTED: list[int] = []


class Declares:
    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare_stream("words", Fields("tx", "word"))


class Plain(Declares, BaseTransactionalSpout, ICommitterTransactionalSpout):
    class Coordinator(ITransactionalSpout.Coordinator):
        next_txid = 1

        def is_ready(self) -> bool:
            return self.next_txid <= len(BATCHES)

        def initialize_transaction(self, txid: int, prev_metadata: Any) -> Any:
            self.next_txid = txid + 1
            return txid - 1

    class Emitter(ITransactionalSpout.Emitter, ICommitterTransactionalSpout.Emitter):  # type: ignore[name-defined]
        def emit_batch(self, attempt: Any, metadata: Any, collector: Any) -> None:
            for word in BATCHES[metadata]:
                collector.emit("words", Values(attempt, word))

        def commit(self, attempt: Any) -> None:
            COMMITTED.append(attempt.get_transaction_id())

    def get_coordinator(self, conf: Any, context: Any) -> Any:
        return self.Coordinator()

    def get_emitter(self, conf: Any, context: Any) -> Any:
        return self.Emitter()


class Partitioned(Declares, BasePartitionedTransactionalSpout):
    class Coordinator(IPartitionedTransactionalSpout.Coordinator):
        left = len(BATCHES)

        def num_partitions(self) -> int:
            return 1

        def is_ready(self) -> bool:
            self.left -= 1
            return self.left >= 0

    class Emitter(IPartitionedTransactionalSpout.Emitter):
        def emit_partition_batch_new(self, attempt: Any, collector: Any, partition: int, last_metadata: Any) -> Any:
            metadata = 0 if last_metadata is None else last_metadata + 1
            self.emit_partition_batch(attempt, collector, partition, metadata)
            return metadata

        def emit_partition_batch(self, attempt: Any, collector: Any, partition: int, metadata: Any) -> None:
            for word in BATCHES[metadata]:
                collector.emit("words", Values(attempt, word))

    def get_coordinator(self, conf: Any, context: Any) -> Any:
        return self.Coordinator()

    def get_emitter(self, conf: Any, context: Any) -> Any:
        return self.Emitter()


class Opaque(Declares, BaseOpaquePartitionedTransactionalSpout):
    class Coordinator(IOpaquePartitionedTransactionalSpout.Coordinator):
        left = len(BATCHES)

        def is_ready(self) -> bool:
            self.left -= 1
            return self.left >= 0

    class Emitter(IOpaquePartitionedTransactionalSpout.Emitter):
        def num_partitions(self) -> int:
            return 1

        def emit_partition_batch(self, attempt: Any, collector: Any, partition: int, last_metadata: Any) -> Any:
            metadata = 0 if last_metadata is None else last_metadata + 1
            for word in BATCHES[metadata]:
                collector.emit("words", Values(attempt, word))
            return metadata

    def get_coordinator(self, conf: Any, context: Any) -> Any:
        return self.Coordinator()

    def get_emitter(self, conf: Any, context: Any) -> Any:
        return self.Emitter()


class Count(BaseTransactionalBolt, ICommitter):
    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        self.topology = context.get_storm_id()
        self.words: list[Any] = []

    def execute(self, tup: Any) -> None:
        assert tup.get_source_stream_id() == "words"
        self.words.append(tup.get_string(1))

    def finish_batch(self) -> None:
        for word in self.words:
            COUNTS[self.topology][word] = COUNTS[self.topology].get(word, 0) + 1


@pytest.mark.parametrize("spout", [Plain(), Partitioned(), Opaque()], ids=lambda spout: type(spout).__name__)
def test_a_spout_written_as_storms_were_runs(spout: Any) -> None:
    name = type(spout).__name__
    COUNTS[name] = {}
    COMMITTED.clear()
    assert spout.get_component_configuration() is None
    builder = TransactionalTopologyBuilder(name, "spout", spout)
    builder.set_bolt("count", Count()).global_grouping("spout", "words")
    with InProcessCluster() as cluster:
        cluster.submit_topology(name, {}, builder.build_topology()).await_committed(len(BATCHES), timeout_secs=60)
    assert COUNTS[name] == {"cat": 3, "dog": 1, "ox": 1}
    assert ([1, 2, 3] if name == "Plain" else []) == COMMITTED
