"""Hooks: which tasks have them, when they are prepared and cleaned up, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from stormline import BaseTaskHook, Config, CountMetric, InProcessCluster, StormlineError
from stormline.runtime.errors import HookTooLate, InvalidHook, InvalidMetric
from stormline.runtime.tasks.task_context import TaskContext
from stormline.runtime.tasks.task_hooks import hooked_basic_bolt, hooked_batch_bolt
from stormline.runtime.world.world import REAL
from stormline.topology.compiler import compile_topology
from stormline.topology.errors import InvalidComponent
from tests.kits.components import Basic, Batch, line, numbers

CALLS: list[str] = []


@pytest.fixture(autouse=True)
def no_calls() -> None:
    CALLS.clear()


class Notes(BaseTaskHook):
    def __init__(self, name: str = "auto") -> None:
        self.name = name

    def prepare(self, conf: Any, context: Any) -> None:
        CALLS.append(f"{self.name} prepare {conf['mine']} {context.this_component_id}")

    def cleanup(self) -> None:
        CALLS.append(f"{self.name} cleanup")


class CleansUpBadly(Notes):
    def cleanup(self) -> None:
        super().cleanup()
        raise ValueError("in cleanup")


class HookedBatch(Batch):
    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        super().prepare(conf, context, collector, batch_id)
        context.add_task_hook(CleansUpBadly("bad"))
        context.add_task_hook(Notes(f"batch {batch_id.transaction_id}"))


class HookedBasic(Basic):
    def prepare(self, conf: Any, context: Any) -> None:
        context.add_task_hook(Notes("basic"))


class LateHook(Batch):
    def execute(self, tup: Any) -> None:
        self.context.add_task_hook(Notes("late"))


def context() -> TaskContext:
    plan = compile_topology(line("t", {0: []}, 1, lambda b: b.set_bolt("bolt", Batch()).shuffle_grouping("spout")))
    return TaskContext(plan, 1, "bolt", 2, conf={"mine": "x"})


def run(*bolts: Any, config: Any = None) -> None:
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("t", {"mine": "x", **(config or {})}, line("hooks", numbers(4, 1), 2, *bolts))
        handle.await_drained(60)


def test_a_batch_bolts_hook_lives_as_long_as_its_attempt_and_a_basic_bolts_as_the_bolt(caplog: Any) -> None:
    run(
        lambda b: b.set_bolt("basic", HookedBasic()).shuffle_grouping("spout"),
        lambda b: b.set_bolt("batch", HookedBatch()).shuffle_grouping("basic"),
    )
    assert CALLS[0] == "basic prepare x basic"
    assert CALLS[-1] == "basic cleanup"
    assert sorted(CALLS[1:-1]) == sorted(
        call
        for txid in (1, 2)
        for call in ("bad prepare x batch", f"batch {txid} prepare x batch", "bad cleanup", f"batch {txid} cleanup")
    )
    assert "cleanup of a task hook of component 'batch', task 3" in caplog.text


def test_every_task_has_the_hooks_that_the_configuration_names() -> None:
    named = Config()
    named[Config.TOPOLOGY_AUTO_TASK_HOOKS] = [Notes, f"{__name__}.Notes"]
    run(lambda b: b.set_bolt("basic", Basic(), 2).shuffle_grouping("spout"), config=named)
    prepared = [call for call in CALLS if "prepare" in call]
    assert sorted(prepared) == ["auto prepare x basic"] * 4 + ["auto prepare x spout"] * 2
    assert CALLS.count("auto cleanup") == 6


@pytest.mark.parametrize(
    ("named", "message"),
    [
        (int, "adds task hook 0, expected an object of a kind of BaseTaskHook"),
        (
            "tests.unit.runtime.tasks.test_task_hooks.Absent",
            "of which no hook can be made (AttributeError: module 'tests.unit.runtime",
        ),
        (
            "no.such.Hook",
            "names 'no.such.Hook', of which no hook can be made (ModuleNotFoundError: No module named 'no'",
        ),
        (HookedBasic.prepare, "of which no hook can be made (TypeError: "),
    ],
)
def test_what_is_no_hook_is_told(named: Any, message: str) -> None:
    with pytest.raises(StormlineError) as caught:
        run(
            lambda b: b.set_bolt("basic", Basic()).shuffle_grouping("spout"),
            config={Config.TOPOLOGY_AUTO_TASK_HOOKS: [named]},
        )
    assert message in str(caught.value)
    assert isinstance(caught.value.__cause__, InvalidHook)


def test_a_hook_that_comes_too_late_is_told() -> None:
    with pytest.raises(
        StormlineError, match=r"adds task hook .* after its prepare\(\), where it would hear nothing"
    ) as it:
        run(lambda b: b.set_bolt("batch", LateHook()).shuffle_grouping("spout"))
    assert isinstance(it.value.__cause__, HookTooLate)


def test_a_hook_in_javas_spelling_is_refused_and_storms_acks_may_be_there() -> None:
    with pytest.raises(
        InvalidComponent, match="class Heard defines boltExecute, which nothing calls: it is bolt_execute"
    ):
        type("Heard", (BaseTaskHook,), {"boltExecute": lambda self, info: None})
    type("Acked", (BaseTaskHook,), {"bolt_ack": lambda self, info: None, "spout_fail": lambda self, info: None})


def test_without_hooks_nothing_is_wrapped() -> None:
    batch, basic = Batch(), Basic()
    unused: Any = None
    assert hooked_batch_bolt(batch, context(), unused, REAL) is batch
    assert hooked_basic_bolt(basic, context(), REAL) is basic
    assert context().metrics is None


def test_what_cannot_be_registered_is_told() -> None:
    made = context()
    for call, message in (
        (lambda: made.register_counter(3), "component 'bolt' registers a metric by 3, expected a name as text"),  # type: ignore[arg-type]
        (lambda: made.register_metric("m", 3), "registers 3 as metric 'm', expected an object of a kind of IMetric"),
        (lambda: made.register_gauge("g", 3), "registers gauge 'g' with 3, expected a function without arguments that"),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidMetric, match=message):
            call()
    one = made.register_metric("m", CountMetric(), 60)
    assert made.register_metric("m", one) is one
    with pytest.raises(
        InvalidMetric, match="registers metric 'm' as a CountMetric, and has a CountMetric of that name"
    ):
        made.register_metric("m", CountMetric())
    assert made.register_counter("c") is made.register_counter("c")
    with pytest.raises(
        InvalidMetric, match="registers metric 'c' as a Meter, and has a Counter of that name; give each"
    ):
        made.register_meter("c")


def test_each_attempt_of_a_batch_bolt_counts_for_itself() -> None:
    task = context()
    one, other = task.for_attempt(), task.for_attempt()
    assert one.register_counter("c") is not other.register_counter("c")
    assert task.metrics is None
    one.set_task_data("kept", 1)
    assert other.get_task_data("kept") == 1
