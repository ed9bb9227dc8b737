"""Few rows in one slot: they wait for each other, those of a none grouping stay together, and some tasks get none."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from stormline import TransactionAttempt, Tuple
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from tests.kits.components import LEDGERS, NO_FAULT, Batch, Fault, Store, line, numbers

CALLS: list[tuple[str, int, int, str]] = []
"""(component, txid, index of the task, call) of each call of a `Told`, in order."""


class Told(Batch):
    """Tells of each call, and emits at once what it is given."""

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        super().prepare(conf, context, collector, batch_id)
        self.tell("prepare")

    def execute(self, tup: Tuple) -> None:
        super().execute(tup)
        self.tell("execute")
        self.collector.emit([self.attempt, tup[1]])

    def finish_batch(self) -> None:
        self.tell("finish_batch")

    def tell(self, call: str) -> None:
        CALLS.append((self.context.this_component_id, self.attempt.transaction_id, self.context.this_task_index, call))


class Fed(Told):
    """Has nothing to do where it gets nothing."""

    skips_empty = True


def run(rows: int, b: Batch, slots: int = 1) -> list[Any]:
    """Let three tasks of a hand so many rows of each batch to two tasks of b, any of them; return what was stored."""
    CALLS.clear()
    LEDGERS.pop("t", None)
    topology = line(
        "t",
        numbers(4 * rows, 1),
        rows,
        lambda builder: builder.set_bolt("a", Told(), 3).shuffle_grouping("spout"),
        lambda builder: builder.set_bolt("b", b, 2).none_grouping("a"),
        lambda builder: builder.set_bolt("store", Store("t")).global_grouping("b"),
    )
    with InProcessCluster(slots=slots) as cluster:
        cluster.submit_topology("t", {}, topology).await_drained(60)
    return sorted(LEDGERS["t"].all())


def tasks_of_b(call: str) -> dict[int, list[int]]:
    """Return the tasks of b that were called, by txid."""
    tasks: dict[int, list[int]] = defaultdict(list)
    for component, txid, task, called in CALLS:
        if (component, called) == ("b", call):
            tasks[txid].append(task)
    return tasks


def test_few_rows_of_a_none_grouping_stay_together_and_batches_take_the_tasks_in_turn() -> None:
    assert run(9, Told()) == list(range(36))
    assert [set(tasks) for _, tasks in sorted(tasks_of_b("execute").items())] in ([{0}, {1}] * 2, [{1}, {0}] * 2)


def test_many_rows_of_a_none_grouping_are_shared_out() -> None:
    assert run(120, Told()) == list(range(480))
    assert [tasks.count(0) for tasks in tasks_of_b("execute").values()] == [60] * 4


def test_few_rows_wait_until_the_caller_has_ended_and_more_do_not() -> None:
    run(9, Told())
    first = [(component, call) for component, txid, _, call in CALLS if txid == 1 and call != "prepare"]
    a, b = ("a", "execute"), ("b", "execute")
    assert [first[:3], first[3:6]] == [[a] * 3, [b] * 3], "one task of a has ended: what it was sent came in one call"
    run(120, Told())
    executed = [component for component, txid, _, call in CALLS if txid == 1 and call == "execute"]
    assert executed[:41] == ["a"] * 40 + ["b"], "one task of a has ended, and two have not begun"


def test_every_task_finishes_every_batch_unless_it_skips_those_that_bring_it_nothing() -> None:
    run(9, Told())
    assert [sorted(tasks) for tasks in tasks_of_b("finish_batch").values()] == [[0, 1]] * 4
    run(9, Fed())
    assert {txid: [*{*tasks}] for txid, tasks in tasks_of_b("execute").items()} == tasks_of_b("finish_batch")
    assert tasks_of_b("prepare") == tasks_of_b("finish_batch")


@pytest.mark.parametrize("fault", [NO_FAULT, Fault("execute"), Fault("prepare"), Fault("finish_batch")])
@pytest.mark.parametrize("skips", [False, True])
def test_what_fails_where_few_rows_waited_is_replayed_whole(fault: Fault, skips: bool) -> None:
    class Faulty(Batch):
        skips_empty = skips

    assert run(9, Faulty(fault)) == list(range(36))


def test_few_rows_in_one_slot_give_what_they_give_in_two() -> None:
    assert run(9, Fed(), slots=2) == list(range(36))
