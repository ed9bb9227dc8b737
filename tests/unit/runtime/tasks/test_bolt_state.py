"""Bolts written as people write them: what they hold, how it is copied, and how it travels."""

from __future__ import annotations

import copy
import sys
import threading
import types
from dataclasses import dataclass
from typing import Any

import pytest

from stormline import (
    BaseBatchBolt,
    BaseTransactionalBolt,
    Config,
    ICommitter,
    MemoryTransactionalSpout,
    Semantic,
    TransactionalTopologyBuilder,
    TransactionAttempt,
    Tuple,
    TwoPhaseCommitBolt,
    TwoPhaseCommitSink,
    compile_topology,
)
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from stormline.runtime.errors import TopologyFailed
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.topology.topology import Topology
from tests.kits import two_phase
from tests.kits.components import LEDGERS, Batch, Store, line
from tests.kits.in_process import PENDING_4, drain
from tests.kits.spouts import PartitionedSpout, Ranges


class CountsInAttribute(BaseTransactionalBolt, ICommitter):
    """Leaves out what it gathers when it is pickled, as one that was written to be declared and shipped."""

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        self.counts: dict[Any, int] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "counts": {}}

    def execute(self, tup: Tuple) -> None:
        self.counts[tup[1]] = self.counts.get(tup[1], 0) + 1

    def finish_batch(self) -> None:
        LEDGERS["counts"].trail.append(dict(self.counts))


class CountsInItself(BaseTransactionalBolt, ICommitter, dict[Any, int]):
    def execute(self, tup: Tuple) -> None:
        self[tup[1]] = self.get(tup[1], 0) + 1

    def finish_batch(self) -> None:
        LEDGERS["counts"].trail.append(dict(self))


@pytest.mark.parametrize("bolt", [CountsInAttribute(), CountsInItself()])
def test_what_a_committer_gathers_beside_its_pickled_state_is_not_lost(bolt: Any) -> None:
    drain(lambda b: b.set_bolt("counts", bolt).global_grouping("spout"), rows={0: [*"aabca"]})
    assert LEDGERS["counts"].trail == [{"a": 3, "b": 1, "c": 1}]


class Slotted(Batch):
    __slots__ = ("kept",)

    def __init__(self) -> None:
        self.kept: list[Any] = []

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        self.collector, self.attempt = collector, batch_id

    def execute(self, tup: Tuple) -> None:
        self.kept.append(tup[1])

    def finish_batch(self) -> None:
        for value in self.kept:
            self.collector.emit([self.attempt, value])


class SlottedOnly(BaseBatchBolt):
    __slots__ = ("kept",)

    def __init__(self) -> None:
        self.kept: list[Any] = []

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None: ...

    def execute(self, tup: Tuple) -> None: ...

    def finish_batch(self) -> None: ...


def test_what_a_bolt_holds_in_slots_is_its_own_in_every_attempt() -> None:
    builder = TransactionalTopologyBuilder("t", "spout", MemoryTransactionalSpout({}, ["value"], 1))
    declared = SlottedOnly()
    builder.set_bolt("x", declared).shuffle_grouping("spout")
    env = TaskEnvironment(compile_topology(builder.build_topology()), 1)
    one, other = env.fresh_bolt("x"), env.fresh_bolt("x")
    assert isinstance(one, SlottedOnly)
    assert isinstance(other, SlottedOnly)
    assert one.kept is not other.kept
    drain(
        lambda b: b.set_bolt("x", Slotted()).shuffle_grouping("spout"),
        lambda b: b.set_bolt("store", Store("t")).global_grouping("x"),
    )
    assert sorted(LEDGERS["t"].all()) == list(range(40))


class Plain(BaseBatchBolt):
    def __init__(self) -> None:
        self.size, self.how = 3, "plainly"

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None: ...

    def execute(self, tup: Tuple) -> None: ...

    def finish_batch(self) -> None: ...

    def declare_output_fields(self, declarer: Any) -> None: ...


class CopiesItself(Plain):
    def __copy__(self) -> CopiesItself:
        made = CopiesItself()
        made.how = "by __copy__"
        return made


class SetsItsState(Plain):
    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, how="by __setstate__")


class TellsItsState(Plain):
    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "how": "by __getstate__"}


HOW = {Plain: "plainly", CopiesItself: "by __copy__", SetsItsState: "by __setstate__", TellsItsState: "by __getstate__"}


@pytest.mark.parametrize("kind", HOW)
def test_a_bolt_of_plain_values_is_copied_as_its_class_says(kind: type[Plain]) -> None:
    builder = TransactionalTopologyBuilder("t", "spout", MemoryTransactionalSpout({}, ["value"], 1))
    builder.set_bolt("x", kind()).shuffle_grouping("spout")
    env = TaskEnvironment(compile_topology(builder.build_topology()), 1)
    one, other = env.fresh_bolt("x"), env.fresh_bolt("x")
    assert type(one) is type(other) is kind
    assert vars(one) == vars(other) == {"size": 3, "how": HOW[kind]}
    assert vars(one) is not vars(other)


class Holding(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.values = [["a"]]
        self.same = self.values
        self.back = {"me": self}


class CopiesItselfDeeply(Holding):
    def __deepcopy__(self, memo: dict[int, Any]) -> CopiesItselfDeeply:
        made = CopiesItselfDeeply()
        made.how = "by __deepcopy__"
        return made


@pytest.mark.parametrize("kind", [Holding, CopiesItselfDeeply])
def test_what_a_bolt_holds_is_its_own_in_every_attempt_and_points_to_it(kind: type[Holding]) -> None:
    builder = TransactionalTopologyBuilder("t", "spout", MemoryTransactionalSpout({}, ["value"], 1))
    declared = kind()
    builder.set_bolt("x", declared).shuffle_grouping("spout")
    env = TaskEnvironment(compile_topology(builder.build_topology()), 1)
    one, other = env.fresh_bolt("x"), env.fresh_bolt("x")
    for fresh in (one, other):
        assert isinstance(fresh, kind)
        assert fresh.values is fresh.same
        assert fresh.back["me"] is fresh
        assert fresh.how == ("plainly" if kind is Holding else "by __deepcopy__")
        assert fresh.values == [["a"]]
        fresh.values[0].append("b")
    assert declared.values == [["a"]]


class SlottedWriter(TwoPhaseCommitBolt):
    """Holds something in slots, and a handler of its own."""

    __slots__ = ("times",)

    def __init__(self, sink: TwoPhaseCommitSink) -> None:
        super().__init__(sink)
        self.times = [2]
        self.on_row = self.write

    def execute(self, tup: Tuple) -> None:
        self.on_row(tup)

    def write(self, tup: Tuple) -> None:
        for _ in range(self.times[0]):
            self.turn.invoke(tup)


class RefusingWriter(TwoPhaseCommitBolt):
    """Lets nothing be set that it does not know, and points to itself."""

    def __init__(self, sink: TwoPhaseCommitSink) -> None:
        super().__init__(sink)
        self.back = {"me": self}

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "back" and hasattr(self, "back"):
            raise AttributeError("once")
        super().__setattr__(name, value)


@pytest.mark.parametrize(("kind", "times"), [(TwoPhaseCommitBolt, 1), (SlottedWriter, 2), (RefusingWriter, 1)])
def test_a_fresh_two_phase_bolt_has_all_of_its_own_but_the_declared_sink(
    kind: type[TwoPhaseCommitBolt], times: int
) -> None:
    """Nobody opens that one: to copy it for each attempt would cost, and give nothing."""
    sink = two_phase.fresh("bolts")
    declared = kind(sink)
    topology = sunk_by(declared)
    env = TaskEnvironment(compile_topology(topology), 1)
    one, other = env.fresh_bolt("sink"), env.fresh_bolt("sink")
    assert isinstance(one, kind)
    assert one is not other
    assert one.sink is sink
    assert one.semantic is Semantic.EXACTLY_ONCE
    if isinstance(one, SlottedWriter) and isinstance(declared, SlottedWriter):
        assert one.times is not declared.times
        assert one.on_row == one.write
    if isinstance(one, RefusingWriter):
        assert one.back["me"] is one
    two_phase.run_sunk(topology)
    assert sorted(sink.rows) == sorted([(n,) for n in range(4)] * times)


def sunk_by(bolt: TwoPhaseCommitBolt) -> Topology:
    """Return topology "t": four numbers, into a bolt's sink."""
    spout = MemoryTransactionalSpout({0: [[n] for n in range(4)]}, ["n"], 2)
    builder = TransactionalTopologyBuilder("t", "spout", spout)
    builder.set_bolt("sink", bolt, 2).shuffle_grouping("spout")
    return builder.build_topology()


class Helper:
    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self.emit = owner.collector.emit


class PointsToItself(Store):
    """Its helper and its handler point back to it."""

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        super().prepare(conf, context, collector, batch_id)
        self.helper = Helper(self)
        self.handler = self.add

    def add(self, tup: Tuple) -> None:
        self.values.append(tup[1])

    def execute(self, tup: Tuple) -> None:
        self.handler(tup)

    def finish_batch(self) -> None:
        LEDGERS["t"].trail.append(self.helper.owner is self and self.collector.emit == self.helper.emit)
        super().finish_batch()


def test_a_bolt_whose_helpers_point_back_to_it_is_one_bolt_after_its_travel() -> None:
    """What comes from the committer before it, in the commit phase, reaches the same object."""
    drain(
        lambda b: b.set_bolt("first", Store("first")).global_grouping("spout"),
        lambda b: b.set_bolt("store", PointsToItself("t")).global_grouping("spout").global_grouping("first"),
    )
    assert sorted(LEDGERS["t"].all()) == sorted([*range(40), 10, 10, 10, 10])
    assert LEDGERS["t"].trail == [True] * 4


def test_a_conf_can_be_copied_and_the_copy_is_the_bolts_own() -> None:
    env = TaskEnvironment(compile_topology(line("t", {}, 1)), 1)
    conf: Any = env.conf("spout")
    for copied in (copy.copy(conf), copy.deepcopy(conf), conf.copy()):
        assert copied == conf
        copied["mine"] = 1
        assert "mine" not in env.conf("spout")


@dataclass(frozen=True)
class Point:
    x: int


def in_main(cls: type) -> type:
    """Make a class look as one of a script does in an executor: its module there has no such name."""
    module = types.ModuleType("a_script_that_is_not_here")
    sys.modules[module.__name__] = module
    return dataclass(frozen=True)(type("OfScript", (), {"__annotations__": {"x": int}, "__module__": module.__name__}))


OfScript: Any = in_main(Point)


class EmitsPoints(Batch):
    def finish_batch(self) -> None:
        for value in self.values:
            self.collector.emit([self.attempt, OfScript(value)])


class EmitsEarly(Store):
    """Emits in `execute`, which runs before the commit."""

    def __init__(self, what: Any) -> None:
        super().__init__("early")
        self.what = what

    def execute(self, tup: Tuple) -> None:
        super().execute(tup)
        self.collector.emit([self.attempt, self.what(tup[1])])


def early(what: Any, config: Any = None) -> None:
    drain(
        lambda b: b.set_bolt("early", EmitsEarly(what)).global_grouping("spout"),
        lambda b: b.set_bolt("store", Store("t")).global_grouping("early"),
        config=config,
    )


def test_objects_of_a_scripts_own_classes_travel_to_a_committer_beside_their_bolt() -> None:
    config = Config(PENDING_4)
    config.register_serialization(OfScript)
    drain(
        lambda b: b.set_bolt("x", EmitsPoints()).global_grouping("spout"),
        lambda b: b.set_bolt("store", Store("t")).global_grouping("x"),
        config=config,
    )
    assert len(LEDGERS["t"].all()) == 40
    assert {type(value) for value in LEDGERS["t"].all()} == {OfScript}
    LEDGERS.clear()
    early(OfScript, config)
    OfScriptSpout.metadata = OfScript(7)
    builder = TransactionalTopologyBuilder("u", "spout", OfScriptSpout(Ranges("t", 2)))
    builder.set_bolt("x", Batch()).shuffle_grouping("spout")
    with InProcessCluster() as cluster:
        cluster.submit_topology("u", config, builder.build_topology()).await_committed(2, 20)
    assert {value for value in LEDGERS["t"].all() if type(value) is OfScript} == {OfScript(n) for n in range(40)}


class OfScriptSpout(PartitionedSpout):
    metadata: Any

    def get_emitter(self, conf: Any, context: Any) -> Any:
        emitter = super().get_emitter(conf, context)
        emitter.emit_partition_batch_new = lambda attempt, collector, partition, last: self.metadata
        return emitter


def lock(_: Any) -> Any:
    return threading.Lock()


def test_what_cannot_travel_is_named_with_its_component_stream_and_field() -> None:
    message = r"(?s)'early' emitted to stream 'default', field 'value': class _thread.lock is not registered"
    with pytest.raises(TopologyFailed, match=message):
        early(lock)
