"""A task of a DRPC function serves many requests at once, each with a bolt of its own; and how they end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stormline import BaseBatchBolt, FailedException, Fields, LinearDRPCTopologyBuilder, LocalDRPC, compile_topology
from stormline import TransactionAttempt as Attempt
from stormline.runtime.drpc.drpc_task import Arrived, Complete, DRPCRequest, DRPCTask
from stormline.runtime.tasks.task_environment import TaskEnvironment


class BatchCount(BaseBatchBolt):
    """Storm's own batch bolt of its tests."""

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        self.collector, self.batch_id, self.count = collector, batch_id, 0

    def execute(self, tup: Any) -> None:
        if tup[1] == "poison":
            raise FailedException("on order")
        self.count += 1

    def finish_batch(self) -> None:
        self.collector.emit([self.batch_id, self.count])

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("id", "count"))


def counting_task(senders: int = 1) -> tuple[DRPCTask, Callable[..., None]]:
    """Return the only task of a function that counts, and how to give it tuples."""
    builder = LinearDRPCTopologyBuilder("count")
    builder.add_bolt(BatchCount())
    env = TaskEnvironment(compile_topology(builder.create_local_topology(LocalDRPC()).topology), 0)
    (task,) = env.plan.components["bolt0"].tasks
    source = env.source(env.plan.edges[0], 1)

    def nobody(task: int, message: Any) -> None:
        raise AssertionError("the last bolt sends to nobody")

    made = DRPCTask(env, env.plan.components["bolt0"], task, nobody, lambda _: senders, lambda _: True)

    def execute(*requests: DRPCRequest, value: str = "x") -> None:
        for request in requests:
            made.take(Arrived(request, source, [[request.batch_id, value]]))

    return made, execute


def test_each_request_has_a_bolt_of_its_own_whatever_is_its_id() -> None:
    task, execute = counting_task()
    a, a2, b = (DRPCRequest(batch_id, 1, 1) for batch_id in (Attempt(1, 1), Attempt(1, 2), Attempt(2, 1)))
    execute(a, a, a2, b, a)
    task.take(Complete(a))
    assert (a.results, a.over.is_set()) == ([3], True)
    execute(a2)
    task.take(Complete(b))
    assert b.results == [1]
    task.take(Complete(a2))
    assert a2.results == [2]


def test_a_request_is_finished_when_all_senders_have_sent_all() -> None:
    task, execute = counting_task(senders=3)
    request = DRPCRequest("any object", 1, 1)
    task.take(Complete(request))
    task.take(Complete(request))
    assert not request.over.is_set()
    execute(request)
    task.take(Complete(request))
    assert request.results == [1]


def test_a_request_without_tuples_is_finished_too() -> None:
    task, _ = counting_task()
    request = DRPCRequest(("a", 1), 1, 1)
    task.take(Complete(request))
    assert request.results == [0]


def test_a_failed_request_costs_no_more_user_code_and_leaves_nothing_behind() -> None:
    task, execute = counting_task()
    failed, other = DRPCRequest(1, 1, 1), DRPCRequest(2, 1, 1)
    execute(failed, value="poison")
    execute(failed, other)
    assert failed.over.is_set()
    assert failed.failure is not None
    assert failed.failure[0] == "FailedException in execute of 'bolt0', task 2: on order"
    assert isinstance(failed.failure[1], FailedException)
    task.take(Complete(failed))
    task.take(Complete(other))
    assert (failed.results, other.results) == ([], [1])
    assert not task._shares
