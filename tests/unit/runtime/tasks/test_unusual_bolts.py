"""Bolts written as people write them: what they raise, and where their tuples go."""

from __future__ import annotations

import asyncio
import threading
from ipaddress import IPv4Address
from typing import Any

import pytest

from stormline import BaseBasicBolt, FailedException, Fields, TransactionalTopologyBuilder, TransactionAttempt, Tuple
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from stormline.runtime.errors import TopologyFailed
from stormline.topology.grouping import CustomStreamGrouping
from tests.kits.components import LEDGERS, Batch, CommittingTrail, Store, line
from tests.kits.in_process import PENDING_4, drain

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
