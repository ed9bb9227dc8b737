"""Small spouts and bolts to declare topologies of; nothing of them is run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from stormline import (
    BaseBasicBolt,
    BaseBatchBolt,
    ICommitter,
    IOpaquePartitionedTransactionalSpout,
    IPartitionedTransactionalSpout,
    ITransactionalSpout,
    MemoryTransactionalSpout,
    TransactionalTopologyBuilder,
)
from stormline.topology.compiler import compile_topology
from stormline.topology.errors import DeclarationError
from stormline.topology.grouping import Grouping, GroupingKind
from stormline.topology.plan import Plan
from stormline.topology.topology import Topology

Bolts = dict[str, tuple[Sequence[str], dict[str, Any]]]
"""Bolts to declare: id → (sources, options); a source is 'x' (shuffle) or 'x:kind'."""


class Emits:
    """Declares `streams` (stream id → fields, or (fields, direct)); `config` is the component's own."""

    def __init__(self, streams: Mapping[str, Any] | None = None, config: Any = None) -> None:
        self.streams = {"default": ["tx", "word"]} if streams is None else streams
        self.config = config

    def declare_output_fields(self, declarer: Any) -> None:
        for stream, fields in self.streams.items():
            declarer.declare_stream(stream, *(fields if isinstance(fields, tuple) else (fields,)))

    def get_component_configuration(self) -> Any:
        return self.config


class Batch(Emits, BaseBatchBolt):
    gathers = ()

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None: ...
    def execute(self, tup: Any) -> None: ...
    def finish_batch(self) -> None: ...


class Commits(Batch, ICommitter):
    pass


class Basic(Emits, BaseBasicBolt):
    def execute(self, tup: Any, collector: Any) -> None: ...


class Spout(Emits, ITransactionalSpout):
    emits_on_executors = True

    def get_coordinator(self, conf: Any, context: Any) -> Any: ...
    def get_emitter(self, conf: Any, context: Any) -> Any: ...


class PartitionedSpout(Emits, IPartitionedTransactionalSpout):
    emits_on_executors = True

    def get_coordinator(self, conf: Any, context: Any) -> Any: ...
    def get_emitter(self, conf: Any, context: Any) -> Any: ...


class OpaqueSpout(Emits, IOpaquePartitionedTransactionalSpout):
    emits_on_executors = True

    def get_coordinator(self, conf: Any, context: Any) -> Any: ...
    def get_emitter(self, conf: Any, context: Any) -> Any: ...


class FirstTask:
    """A custom grouping."""

    def prepare(self, context: Any, stream: Any, target_tasks: Sequence[int]) -> None:
        self.tasks = list(target_tasks)

    def choose_tasks(self, task_id: int, values: Sequence[Any]) -> Sequence[int]:
        return self.tasks[:1]


def builder(spout: Any = None, parallelism: int | None = None) -> TransactionalTopologyBuilder:
    """Return a builder whose spout 'words' declares ['tx', 'word']."""
    return TransactionalTopologyBuilder("counts", "words", Spout() if spout is None else spout, parallelism)


def memory_spout() -> MemoryTransactionalSpout:
    return MemoryTransactionalSpout({}, ["word"], 1)


def topology(bolts: Bolts, spout: Any = None, parallelism: int | None = 2) -> Topology:
    """Declare bolts downstream of spout 'words'."""
    b = builder(spout, parallelism)
    for name, (sources, options) in bolts.items():
        declare = b.set_committer_bolt if options.get("commits") else b.set_bolt
        bolt = declare(name, Batch(), options.get("tasks", 2))
        for source in sources:
            component, _, kind = source.partition(":")
            grouping = GroupingKind(kind.replace("_", " ") if kind else "shuffle")
            fields = ("word",) if grouping in (GroupingKind.FIELDS, GroupingKind.PARTIAL_KEY) else ()
            bolt.grouping(component, Grouping(grouping, fields))
    return b.build_topology()


def plan(bolts: Bolts, spout: Any = None, parallelism: int | None = 2, **config: Any) -> Plan:
    """Compile the topology of these bolts."""
    return compile_topology(topology(bolts, spout, parallelism), config)


def refused(error: type[DeclarationError], message: str, call: Callable[[], object]) -> None:
    """Check that a call raises an error that says this."""
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)
