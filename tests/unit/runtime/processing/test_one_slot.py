"""A wave in one slot: its stages on the executors are one, and what comes out is what a wave of more slots gives."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest

from stormline import Fields, TransactionAttempt, Tuple, compile_topology
from stormline.errors import TopologyFailed
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from stormline.runtime.messages.wave import Wave, WaveAttempt
from stormline.runtime.processing.slot_layout import Layout
from stormline.runtime.processing.stage_runner import StageRunner
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.runtime.tuples.packing import as_unpacked
from stormline.topology.topology import Topology
from tests.kits.components import LEDGERS, Batch, Counting, Store, line, numbers

A = TransactionAttempt(1, 1)


def topology(*bolts: Any) -> Topology:
    return line(
        "t",
        numbers(60, 3),
        10,
        lambda b: b.set_bolt("a", bolts[0], 3).shuffle_grouping("spout"),
        lambda b: b.set_bolt("b", bolts[1], 2).all_grouping("a"),
        lambda b: b.set_bolt("c", bolts[2], 5).fields_grouping("b", ["value"]),
        lambda b: b.set_bolt("store", Store("t"), 2).fields_grouping("c", ["value"]),
        parallelism=3,
    )


def stored(slots: int, *bolts: Any) -> list[Any]:
    LEDGERS.pop("t", None)
    with InProcessCluster(slots=slots, at_commit=True) as cluster:
        cluster.submit_topology("t", {}, topology(*bolts)).await_drained(60)
    return sorted(LEDGERS["t"].all(), key=repr)


def test_in_one_slot_the_stages_on_the_executors_are_one() -> None:
    plan = compile_topology(topology(Batch(), Batch(), Batch()))
    assert [stage.components for stage in plan.stages] == [("spout",), ("a",), ("b",), ("c",), ("store",)]
    spread, together = Layout(plan, 2, frozenset({4})), Layout(plan, 1, frozenset({4}))
    assert spread.slots == (1, 2, 2, 2, 0)
    assert together.slots == (1, 1, 0, 0, 0)
    assert together.components == (("spout",), ("a", "b", "c"), (), (), ())
    assert together.sources_of(1) == [(0, 0)]
    assert together.targets_of(0) == [(1, 0)]
    assert together.targets_of(1) == []
    assert [together.hands_over(edge) for edge in plan.edges] == [False, True, True, False]
    assert [together.waits_for_commit(edge) for edge in plan.edges] == [False, False, False, True]
    assert not any(map(spread.hands_over, plan.edges))


def test_in_one_slot_nothing_is_sent_but_the_report() -> None:
    env = TaskEnvironment(compile_topology(topology(Batch(), Batch(), Batch())), 1)
    layout, wave = Layout(env.plan, 1), Wave(1, (WaveAttempt(A, 3),))
    given = list(StageRunner(env, layout, wave, 0, 0).run(()))
    assert len(list(StageRunner(env, layout, wave, 1, 0).run(given[:-1]))) == 1


def test_one_slot_gives_what_two_give() -> None:
    bolts = (Batch(), Batch(), Counting())
    assert stored(1, *bolts) == stored(2, *bolts) != []


class Lists(Batch):
    """Emits one list to all that listen, a container and a text in it."""

    def finish_batch(self) -> None:
        for value in self.values:
            self.collector.emit([self.attempt, (value, ["text"])])


class Changing(Batch):
    """Changes what it was given, which nobody else must see."""

    def execute(self, tup: Tuple) -> None:
        number, texts = tup[1]
        texts.append(number)
        self.values.append(texts)

    def finish_batch(self) -> None:
        for texts in self.values:
            self.collector.emit([self.attempt, str(texts)])


def test_what_a_bolt_changes_in_a_value_is_its_own_in_one_slot_too() -> None:
    bolts = (Lists(), Changing(), Batch())
    one = stored(1, *bolts)
    assert one == stored(2, *bolts)
    assert one.count("['text', 0]") == 2, "once from each task of b"


class Foreign(Batch):
    """Emits what nobody has registered."""

    fields = Fields("tx", "value")

    def finish_batch(self) -> None:
        self.collector.emit([self.attempt, ipaddress.ip_address("::1")])


@pytest.mark.parametrize("slots", [1, 2])
def test_a_class_that_is_not_registered_is_refused_in_one_slot_too(slots: int) -> None:
    with pytest.raises(TopologyFailed, match=r"'a' emitted .*'value': class .*IPv6Address is not registered"):
        stored(slots, Foreign(), Batch(), Batch())


@pytest.mark.parametrize(
    ("value", "same"), [(1, True), ("text", True), (None, True), (2.5, True), ((1,), False), ([], False), (A, True)]
)
def test_only_what_nobody_can_change_is_handed_over_as_it_is(value: Any, same: bool) -> None:
    assert as_unpacked([[A, 1, "x"], [A, value, "y"]]) is same
