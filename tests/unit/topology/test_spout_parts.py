"""What a spout's parts must have is said by name, where it can when the topology is built, else when they are made."""

from __future__ import annotations

import re
from typing import Any

import pytest

from stormline import (
    Fields,
    ICommitterTransactionalSpout,
    IOpaquePartitionedTransactionalSpout,
    IPartitionedTransactionalSpout,
    ITransactionalSpout,
    TransactionalTopologyBuilder,
)
from stormline.errors import InvalidSpout, TopologyFailed
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from tests.kits.components import LEDGERS, Store


class Coordinator:
    """Of any kind of spout, without an interface; it leaves out what has a default."""

    def __init__(self) -> None:
        self.left = 3

    def is_ready(self) -> bool:
        self.left -= 1
        return self.left >= 0

    def initialize_transaction(self, txid: int, prev_metadata: Any) -> Any:
        return txid

    def num_partitions(self) -> int:
        return 1


class Emitter:
    """Of any kind of spout, without an interface."""

    def emit_batch(self, attempt: Any, metadata: Any, collector: Any) -> None:
        collector.emit([attempt, metadata])

    def num_partitions(self) -> int:
        return 1

    def emit_partition_batch_new(self, attempt: Any, collector: Any, partition: int, last: Any) -> Any:
        collector.emit([attempt, (last or 0) + 1])
        return (last or 0) + 1

    def emit_partition_batch(self, attempt: Any, collector: Any, partition: int, last: Any) -> Any:
        return self.emit_partition_batch_new(attempt, collector, partition, last)


class NotReady:
    def initialize_transaction(self, txid: int, prev_metadata: Any) -> Any: ...


class Misspelt:
    def emitBatch(self, attempt: Any, metadata: Any, collector: Any) -> None: ...


class Parts:
    coordinator: Any = Coordinator
    emitter: Any = Emitter

    def get_coordinator(self, conf: Any, context: Any) -> Any:
        coordinator = self.coordinator  # of whatever class a test puts there
        return coordinator()

    def get_emitter(self, conf: Any, context: Any) -> Any:
        emitter = self.emitter
        return emitter()

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "value"))


class Plain(Parts, ITransactionalSpout): ...


class Partitioned(Parts, IPartitionedTransactionalSpout): ...


class Opaque(Parts, IOpaquePartitionedTransactionalSpout): ...


class ReturnsNotReady(Plain):
    def get_coordinator(self, conf: Any, context: Any) -> Any:
        return NotReady()


class Nested(Plain):
    class Reader:
        def emit(self) -> None: ...

    def get_emitter(self, conf: Any, context: Any) -> Any:
        return self.Reader()


class Committed(Plain, ICommitterTransactionalSpout): ...


class CommittedOnExecutors(Committed):
    emits_on_executors = True


def build(spout: Any) -> Any:
    builder = TransactionalTopologyBuilder("t", "spout", spout)
    builder.set_bolt("store", Store("t")).global_grouping("spout")
    return builder.build_topology()


@pytest.mark.parametrize("kind", [Plain, Partitioned, Opaque])
def test_parts_of_any_class_may_leave_out_close_resume_and_cleanup(kind: Any) -> None:
    with InProcessCluster() as cluster:
        cluster.submit_topology("t", {}, build(kind())).await_drained(20)
    assert LEDGERS["t"].all() == [1, 2, 3]


@pytest.mark.parametrize(
    ("spout", "message"),
    [
        (ReturnsNotReady(), "(ReturnsNotReady): get_coordinator returns a NotReady, which has no method is_ready()"),
        (Nested(), "(Nested): get_emitter returns a Reader, which has no method emit_batch()"),
        (
            CommittedOnExecutors(),
            "is an ICommitterTransactionalSpout with emits_on_executors = True: its emitters commit",
        ),
    ],
)
def test_what_can_be_told_is_told_when_the_topology_is_built(spout: Any, message: str) -> None:
    with pytest.raises(InvalidSpout, match=re.escape(message)):
        build(spout)


def test_emits_on_executors_is_true_or_false() -> None:
    spout = Plain()
    spout.emits_on_executors = "yes"  # type: ignore[assignment]
    with pytest.raises(
        InvalidSpout, match=r"spout 'spout' \(Plain\) has emits_on_executors = 'yes', expected True or Fal"
    ):
        build(spout)


def test_a_coordinator_without_a_method_is_refused_as_it_is_made() -> None:
    spout = Plain()
    spout.coordinator = NotReady
    with (
        InProcessCluster() as cluster,
        pytest.raises(InvalidSpout, match=r"get_coordinator returned a NotReady, which"),
    ):
        cluster.submit_topology("t", {}, build(spout))


@pytest.mark.parametrize("on_executors", [False, True])
def test_an_emitter_without_a_method_stops_the_topology_and_is_told_what_it_has_instead(on_executors: bool) -> None:
    spout = Plain()
    spout.emitter, spout.emits_on_executors = Misspelt, on_executors
    message = r"get_emitter returned a Misspelt, which has no method emit_batch\(\); did you mean 'emitBatch'\?"
    with InProcessCluster() as cluster, pytest.raises(TopologyFailed, match=message):
        cluster.submit_topology("t", {}, build(spout)).await_committed(1, 20)


def test_the_emitter_of_a_committer_spout_has_a_commit() -> None:
    with InProcessCluster() as cluster, pytest.raises(TopologyFailed, match=r"which has no method commit\(\)"):
        cluster.submit_topology("t", {}, build(Committed())).await_committed(1, 20)


class Connection:
    """No part of a spout."""


def plain_emit(attempt: Any, metadata: Any, collector: Any) -> None:
    collector.emit([attempt, metadata])


class FromConnection(Emitter):
    def __init__(self, connect: Any) -> None:
        self.connection = connect()


class ByInit:
    def __init__(self) -> None:
        self.emit_batch = plain_emit


class Proxy:
    def __init__(self, of: Any) -> None:
        self.of = of

    def __getattr__(self, name: str) -> Any:
        return getattr(self.of, name)


class InPlaceOf:
    def __new__(cls) -> Any:
        return Emitter()


class WithFactory(Parts, ITransactionalSpout):
    def get_emitter(self, conf: Any, context: Any) -> Any:
        def connect() -> Connection:
            return Connection()

        return FromConnection(connect)


class WithLocalClass(Parts, ITransactionalSpout):
    def get_emitter(self, conf: Any, context: Any) -> Any:
        class Local(Emitter):
            def connect(self) -> Connection:
                return Connection()

        return Local()


class WithLocalName(Parts, ITransactionalSpout):
    def get_emitter(self, conf: Any, context: Any) -> Any:
        Connection = Emitter
        return Connection()


class WithProxy(Parts, ITransactionalSpout):
    def get_emitter(self, conf: Any, context: Any) -> Any:
        return Proxy(Emitter())


class WithInit(Parts, ITransactionalSpout):
    def get_emitter(self, conf: Any, context: Any) -> Any:
        return ByInit()


class WithNew(Parts, ITransactionalSpout):
    def get_emitter(self, conf: Any, context: Any) -> Any:
        return InPlaceOf()


@pytest.mark.parametrize("spout", [WithFactory, WithLocalClass, WithLocalName, WithProxy, WithInit, WithNew])
def test_what_the_source_does_not_say_for_sure_is_left_to_the_object(spout: Any) -> None:
    builder = TransactionalTopologyBuilder("t", "spout", spout())
    builder.set_bolt("store", Store("t")).global_grouping("spout")
    with InProcessCluster() as cluster:
        assert cluster.submit(builder.build_topology()).await_drained(20) == 3
