"""TaskContext: what a task may know about itself and the topology around it."""

from __future__ import annotations

import pytest

from stormline import Fields, TransactionalTopologyBuilder, compile_topology
from stormline.runtime.tasks.task_context import TaskContext
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.errors import UnknownAttempt, UnknownComponent, UnknownStream
from stormline.topology.grouping import GlobalStreamId, Grouping, GroupingKind
from tests.kits.components import Batch, Store
from tests.kits.spouts import PlainSpout, Ranges


def context(component: str, task: int) -> TaskContext:
    builder = TransactionalTopologyBuilder("t", "spout", PlainSpout(Ranges("t", 1)), 2)
    builder.set_bolt("x", Batch(), 3).shuffle_grouping("spout")
    builder.set_bolt("store", Store("t")).fields_grouping("x", ["value"]).global_grouping("spout")
    return TaskContext(compile_topology(builder.build_topology()), 7, component, task)


def test_a_task_knows_who_it_is() -> None:
    mine = context("x", 4)
    assert (mine.topology_id, mine.epoch) == ("t", 7)
    assert (mine.this_component_id, mine.this_task_id, mine.this_task_index) == ("x", 4, 1)


def test_a_task_knows_its_sources_and_targets() -> None:
    fields, whole = Grouping(GroupingKind.FIELDS, ("value",)), Grouping(GroupingKind.GLOBAL)
    assert context("x", 3).this_sources == {GlobalStreamId("spout"): Grouping(GroupingKind.SHUFFLE)}
    assert context("x", 3).this_targets == {"default": {"store": fields}}
    assert context("store", 6).this_sources == {GlobalStreamId("x"): fields, GlobalStreamId("spout"): whole}
    assert context("store", 6).this_targets == {}
    shuffle = Grouping(GroupingKind.SHUFFLE)
    assert context("spout", 1).this_targets == {"default": {"x": shuffle, "store": whole}}


def test_a_task_answers_to_storms_getters() -> None:
    mine = context("x", 4)
    assert mine.get_storm_id() == "t"
    assert (mine.get_this_component_id(), mine.get_this_task_id(), mine.get_this_task_index()) == ("x", 4, 1)
    assert (mine.get_this_sources(), mine.get_this_targets()) == (mine.this_sources, mine.this_targets)
    assert mine.get_this_streams() == mine.get_component_streams("spout") == ["default"]
    assert mine.get_component_ids() == ["spout", "x", "store"]
    assert mine.get_component_tasks("x") == mine.component_tasks("x") == [3, 4, 5]
    assert [mine.get_component_id(task) for task in (1, 3, 6)] == ["spout", "x", "store"]
    with pytest.raises(UnknownComponent, match=r"topology 't' has no task 7; it has \[1, 2, 3, 4, 5, 6\]"):
        mine.get_component_id(7)


def test_the_fields_of_a_stream_are_found_by_its_two_ids_or_by_one_value() -> None:
    mine = context("x", 4)
    fields = mine.component_output_fields("x")
    assert mine.get_this_output_fields() == mine.get_component_output_fields("x", "default") == fields
    assert mine.get_component_output_fields(GlobalStreamId("x")) == fields
    with pytest.raises(UnknownStream, match="component 'x' has no stream 'loud'"):
        mine.get_component_output_fields(GlobalStreamId("x", "loud"))


def test_a_task_knows_the_commit_ids_of_the_attempts_that_its_process_works_on() -> None:
    env = TaskEnvironment(context("x", 4)._plan, epoch=7)
    mine = env.context("x", 4)
    first, second = TransactionAttempt(1, 1), TransactionAttempt(2, 1)
    env.work_on({first: 11})
    env.work_on({second: 12}, committed=0)
    assert (mine.commit_id(first), mine.commit_id(second)) == (11, 12)
    env.work_on({}, committed=1)
    assert mine.commit_id(second) == 12
    with pytest.raises(UnknownAttempt, match=r"'x' asks for the commit id of 1:1, .* does not work"):
        mine.commit_id(first)


def test_the_commit_ids_of_attempts_that_were_replaced_are_forgotten_however_often_that_happens() -> None:
    env = TaskEnvironment(context("x", 4)._plan, epoch=7)
    for number in range(1, 1000):
        env.work_on({TransactionAttempt(txid, number): number for txid in (1, 2, 3)})
    env.work_on({TransactionAttempt(2, 7): 7})  # one that comes late does not replace what is newer
    assert env.commit_ids == {
        TransactionAttempt(1, 999): 999,
        TransactionAttempt(2, 7): 7,
        TransactionAttempt(2, 999): 999,
        TransactionAttempt(3, 999): 999,
    }


def test_a_task_knows_the_tasks_and_fields_of_any_component() -> None:
    mine = context("x", 3)
    assert [list(mine.component_tasks(name)) for name in ("spout", "x", "store")] == [[1, 2], [3, 4, 5], [6]]
    assert mine.component_output_fields("spout") == Fields("tx", "value")
    with pytest.raises(UnknownComponent, match=r"topology 't' has no component 'stor'; .*did you mean 'store'"):
        mine.component_tasks("stor")
    with pytest.raises(UnknownStream, match=r"component 'x' has no stream 'defautl'; .*did you mean 'default'"):
        mine.component_output_fields("x", "defautl")


def test_task_data_is_kept_for_its_task() -> None:
    mine = context("x", 3)
    assert mine.get_task_data("cache") is None
    mine.set_task_data("cache", [1])
    assert mine.get_task_data("cache") == [1]
    assert context("x", 4).get_task_data("cache") is None
