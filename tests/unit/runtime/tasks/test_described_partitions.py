"""What a coordinator says of its partitions reaches the emitters, with each batch as it was said for it."""

from __future__ import annotations

from typing import Any

import pytest

from stormline import (
    BaseTransactionalBolt,
    FailedException,
    Fields,
    ICommitter,
    InProcessCluster,
    IOpaquePartitionedTransactionalSpout,
    IPartitionedTransactionalSpout,
    TransactionalTopologyBuilder,
    Values,
)

SOURCE: dict[str, list[int]] = {}
TOLD: list[tuple[Any, dict[int, Any], dict[int, Any]]] = []
RESUMED: list[Any] = []
COMMITTED: list[Any] = []
STORED: dict[int, list[Any]] = {}
FAILED: set[int] = set()


class Coordinator:
    """Numbers names in the order in which it finds them."""

    names: list[str]

    def resume_partitions(self, described: Any) -> None:
        RESUMED.append(described)
        self.names = [*(described or ())]

    def is_ready_after(self, positions: Any, batches_ahead: int) -> bool:
        self.names += sorted(SOURCE.keys() - {*self.names})
        ends = [2 * batches_ahead + positions.get(i, [0, 0])[1] for i in range(len(self.names))]
        return any(len(SOURCE[name]) > end for name, end in zip(self.names, ends, strict=True))

    def describe_partitions(self, described: Any) -> Any:
        assert self.names[: len(described or ())] == (described or [])
        return self.names

    def positions_committed(self, positions: Any) -> None:
        COMMITTED.append(positions)

    def num_partitions(self) -> int:
        return len(self.names)


class Emitter:
    """Emits two numbers of each name; knows names by what it is told alone."""

    names: list[str]

    def begin_batch(self, described: Any, positions: Any, stored: Any) -> None:
        TOLD.append((described, positions, stored))
        self.names = described

    def num_partitions(self) -> int:
        return len(self.names)

    def emit_partition_batch_new(self, attempt: Any, collector: Any, partition: int, last: Any) -> list[int]:
        start = last[1] if last else 0
        metadata = [start, min(start + 2, len(SOURCE[self.names[partition]]))]
        self.emit(attempt, collector, partition, metadata)
        return metadata

    def emit(self, attempt: Any, collector: Any, partition: int, metadata: list[int]) -> None:
        for number in SOURCE[self.names[partition]][slice(*metadata)]:
            collector.emit(Values(attempt, f"{self.names[partition]}{number}"))


class PartitionedEmitter(Emitter):
    def emit_partition_batch(self, attempt: Any, collector: Any, partition: int, metadata: list[int]) -> None:
        self.emit(attempt, collector, partition, metadata)


class OpaqueEmitter(Emitter):
    def emit_partition_batch(self, attempt: Any, collector: Any, partition: int, last: Any) -> Any:
        return self.emit_partition_batch_new(attempt, collector, partition, last)


class Described:
    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("id", "row"))

    def get_coordinator(self, conf: Any, context: Any) -> Any:
        return Coordinator()


class PartitionedSpout(Described, IPartitionedTransactionalSpout):
    def get_emitter(self, conf: Any, context: Any) -> Any:
        return PartitionedEmitter()


class OpaqueSpout(Described, IOpaquePartitionedTransactionalSpout):
    def get_emitter(self, conf: Any, context: Any) -> Any:
        return OpaqueEmitter()


class Store(BaseTransactionalBolt, ICommitter):
    """Fails the first commit of each transaction, which is frozen from then on."""

    def prepare(self, conf: Any, context: Any, collector: Any, attempt: Any) -> None:
        self.txid = attempt.transaction_id
        self.rows: list[Any] = []

    def execute(self, tup: Any) -> None:
        self.rows.append(tup[1])

    def finish_batch(self) -> None:
        if self.txid not in FAILED:
            FAILED.add(self.txid)
            raise FailedException("on order")
        STORED.setdefault(self.txid, sorted(self.rows))


def run(spout: Any, cluster: InProcessCluster) -> list[list[Any]]:
    builder = TransactionalTopologyBuilder("t", "spout", spout, 2)
    builder.set_bolt("store", Store()).global_grouping("spout")
    with cluster:
        handle = cluster.submit_topology("t", {"topology.max.spout.pending": 1}, builder.build_topology())
        handle.await_drained(timeout_secs=60)
    return [STORED[txid] for txid in sorted(STORED)]


@pytest.mark.parametrize("spout", [PartitionedSpout(), OpaqueSpout()], ids=["partitioned", "opaque"])
def test_numbers_mean_what_they_meant_through_replays_and_restarts_whatever_is_found_later(spout: Any) -> None:
    for shared in (SOURCE, TOLD, RESUMED, COMMITTED, STORED, FAILED):
        shared.clear()
    cluster = InProcessCluster()
    SOURCE["m"], SOURCE["z"] = [1, 2, 3], [1]
    assert run(spout, cluster) == [["m1", "m2", "z1"], ["m3"]]
    SOURCE["a"] = [1, 2]  # before the others by its name
    assert run(spout, cluster) == [["m1", "m2", "z1"], ["m3"], ["a1", "a2"]]
    assert RESUMED == [None, ["m", "z"]]
    assert COMMITTED[-1] == {0: [3, 3], 1: [1, 1], 2: [0, 2]}
    assert (["m", "z"], {}, {0: [0, 2]}) in TOLD  # the replay of a frozen batch, told to task 0
    assert (["m", "z"], {1: [0, 1]}, {}) in TOLD
    assert (["m", "z", "a"], {0: [2, 3]}, {0: [3, 3], 2: [0, 2]}) in TOLD
