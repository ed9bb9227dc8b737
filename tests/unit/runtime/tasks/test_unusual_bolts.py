"""Bolts written as people write them: what they hold, how it travels, and what they raise."""

from __future__ import annotations

import asyncio
import copy
import sys
import threading
import types
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Any

import pytest

from stormline import (
    BaseBasicBolt,
    BaseBatchBolt,
    BaseTransactionalBolt,
    Config,
    FailedException,
    Fields,
    ICommitter,
    MemoryTransactionalSpout,
    TransactionalTopologyBuilder,
    TransactionAttempt,
    Tuple,
    compile_topology,
)
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from stormline.runtime.errors import TopologyFailed
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.topology.grouping import CustomStreamGrouping
from tests.kits.components import LEDGERS, Batch, CommittingTrail, Store, line, numbers
from tests.kits.spouts import PartitionedSpout, Ranges

PENDING_4 = {"topology.max.spout.pending": 4}


def drain(*bolts: Any, rows: Any = None, config: Any = None) -> Any:
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("t", config or PENDING_4, line("t", rows or numbers(40), 5, *bolts))
        handle.await_drained(20)
    return handle


# ---------------------------------------------------------------------------------------- what bolts hold


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


# ---------------------------------------------------------------------------------------- what user code raises


class Silent(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


class SilentlyFailed(FailedException):
    __str__ = Silent.__str__


class Raises(Batch):
    def __init__(self, error: Any, where: str = "execute", once: bool = False) -> None:
        self.error, self.where, self.once = error, where, once

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        self.collector, self.attempt, self.values = collector, batch_id, []
        self._raise("prepare")

    def execute(self, tup: Tuple) -> None:
        self.values.append(tup[1])
        self._raise("execute")

    def finish_batch(self) -> None:
        self._raise("finish_batch")
        for value in self.values:
            self.collector.emit([self.attempt, value])

    def _raise(self, where: str) -> None:
        if where == self.where and self.attempt.transaction_id == 2 and not (self.once and self.attempt.attempt_id > 1):
            raise self.error()


class NotToBePickled(Exception):
    def __init__(self) -> None:
        super().__init__("holds a lock")
        self.lock = threading.Lock()


class NotToBeUnpickled(Exception):
    def __init__(self, one: int = 1, *, two: int = 2) -> None:
        super().__init__("one", "two", "three", "four")


def recurse() -> Any:
    return recurse()


ODD = [GeneratorExit, StopIteration, asyncio.CancelledError, Silent, NotToBePickled, NotToBeUnpickled, recurse]


@pytest.mark.parametrize("where", ["prepare", "execute", "finish_batch"])
@pytest.mark.parametrize("error", ODD)
@pytest.mark.parametrize("committer", [False, True])
def test_whatever_user_code_raises_stops_the_topology_with_its_traceback(
    where: str, error: Any, committer: bool
) -> None:
    bolt = Raises(error, where)

    def declare(builder: TransactionalTopologyBuilder) -> None:
        make = builder.set_committer_bolt if committer else builder.set_bolt
        make("x", bolt, 2).shuffle_grouping("spout")

    with pytest.raises(TopologyFailed, match=rf"(?s)\ATraceback.*in {where} of 'x', task .*transaction 2:1"):
        drain(declare)


def test_a_failure_without_a_text_is_a_failure() -> None:
    drain(
        lambda b: b.set_bolt("x", Raises(SilentlyFailed, once=True)).shuffle_grouping("spout"),
        lambda b: b.set_bolt("store", Store("t")).global_grouping("x"),
    )
    assert sorted(LEDGERS["t"].all()) == list(range(40))


# ---------------------------------------------------------------------------------------- where tuples go


class Lazily(CustomStreamGrouping):
    def prepare(self, context: Any, stream: Any, target_tasks: Any) -> None:
        self.tasks = target_tasks

    def choose_tasks(self, task_id: int, values: Any) -> Any:
        return (task for task in self.tasks)


@pytest.mark.parametrize("tasks", [1, 2])
def test_a_custom_grouping_may_give_a_generator(tasks: int) -> None:
    drain(lambda b: b.set_bolt("store", Store("t"), tasks).custom_grouping("spout", Lazily()))
    assert sorted(LEDGERS["t"].all()) == sorted([*range(40)] * tasks)


class Direct(Batch):
    """Emits each value to the first task of "a", and to a task that it is told."""

    def __init__(self, more: int | None = None) -> None:
        super().__init__()
        self.more = more

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare_stream("straight", Fields("tx", "value"), direct=True)
        declarer.declare_stream("other", Fields("tx", "value"))

    def finish_batch(self) -> None:
        for value in self.values:
            for component in ("a", "b"):
                self.collector.emit_direct(
                    self.context.component_tasks(component)[0], [self.attempt, (component, value)], "straight"
                )
            self.collector.emit([self.attempt, value], "other")
            if self.more is not None:
                self.collector.emit_direct(self.more, [self.attempt, value], "straight")


def straight(bolt: Batch, committer: bool = False) -> None:
    drain(
        lambda b: (b.set_committer_bolt if committer else b.set_bolt)("x", bolt).shuffle_grouping("spout"),
        lambda b: b.set_bolt("a", Store("a"), 2).direct_grouping("x", "straight").shuffle_grouping("x", "other"),
        lambda b: b.set_bolt("b", Store("b"), 2).direct_grouping("x", "straight"),
    )


@pytest.mark.parametrize("committer", [False, True])
def test_a_direct_stream_with_several_listeners_reaches_the_task_that_is_named(committer: bool) -> None:
    straight(Direct(), committer)
    assert sorted(map(str, LEDGERS["a"].all())) == sorted(map(str, [*range(40), *(("a", n) for n in range(40))]))
    assert sorted(LEDGERS["b"].all()) == [("b", n) for n in range(40)]


@pytest.mark.parametrize("committer", [False, True])
def test_a_direct_tuple_for_a_task_that_does_not_listen_is_not_lost_silently(committer: bool) -> None:
    with pytest.raises(TopologyFailed, match=r"DirectStreamMismatch.*emits directly to task 1.*listen.*\[3, 4, 5, 6\]"):
        straight(Direct(more=1), committer)


def test_a_trail_of_commits_without_a_single_early_tuple() -> None:
    """All bolts deferred, one of them without input before the commit."""
    drain(
        lambda b: b.set_bolt("a", CommittingTrail("t", "a"), 3).shuffle_grouping("spout"),
        lambda b: b.set_bolt("b", CommittingTrail("t", "b")).global_grouping("a"),
        rows={0: [1]},
    )
    assert [entry[1] for entry in LEDGERS["t"].trail] == ["a", "a", "a", "b"]


class Swallows(BaseBasicBolt):
    """Reports what emit raises and goes on, as many bolts of Storm do."""

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "value"))

    def execute(self, tup: Tuple, collector: Any) -> None:
        try:
            collector.emit([tup[0], IPv4Address(1) if tup[1] == 5 else tup[1]])
        except Exception as error:
            collector.report_error(error)


@pytest.mark.parametrize("count", [300, 10])
def test_an_error_of_emit_that_a_bolt_catches_does_not_lose_the_rows_of_its_other_calls(count: int) -> None:
    """The error comes when rows are routed together; the batch would commit without all of them."""
    bolts = [
        lambda b: b.set_bolt("x", Swallows()).shuffle_grouping("spout"),
        lambda b: b.set_bolt("store", Store("t"), 2).fields_grouping("x", ["value"]),
    ]
    with InProcessCluster() as cluster:
        topology = line("t", {0: list(range(count))}, count, *bolts)
        with pytest.raises(TopologyFailed, match=r"UnregisteredClass in execute of 'x'.*IPv4Address is not registered"):
            cluster.submit_topology("t", PENDING_4, topology).await_drained(20)
    assert LEDGERS["t"].all() == []
