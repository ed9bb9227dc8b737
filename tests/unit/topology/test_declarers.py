"""What a declarer takes: tasks, configuration and groupings."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

import pytest

from stormline import Config, Fields
from stormline.topology.bolt_declarer import BoltDeclarer
from stormline.topology.config import DEBUG, MAX_SPOUT_PENDING, MAX_TASK_PARALLELISM, TASKS
from stormline.topology.errors import (
    DuplicateGrouping,
    InvalidConfig,
    InvalidGrouping,
    InvalidParallelism,
    UnknownConfigKey,
)
from stormline.topology.grouping import GlobalStreamId, Grouping, GroupingKind
from tests.kits.declaring import Batch, FirstTask, Spout, builder, refused

# ---------------------------------------------------------------------------------------- tasks


@pytest.mark.parametrize("tasks", [0, -1, 1.0, "2", True, [1]])
def test_parallelism_is_a_whole_number_of_at_least_1(tasks: Any) -> None:
    expected = f"is {tasks!r}, expected a whole number of at least 1"
    bolt = builder().set_bolt("count", Batch())
    refused(
        InvalidParallelism, f"batch bolt 'x': parallelism {expected}", lambda: builder().set_bolt("x", Batch(), tasks)
    )
    refused(InvalidParallelism, f"transactional spout 'words': parallelism {expected}", lambda: builder(None, tasks))
    refused(InvalidParallelism, f"batch bolt 'count': number of tasks {expected}", lambda: bolt.set_num_tasks(tasks))
    refused(
        InvalidParallelism,
        f"batch bolt 'count': max task parallelism {expected}",
        lambda: bolt.set_max_task_parallelism(tasks),
    )


@pytest.mark.parametrize(
    ("parallelism", "num_tasks", "max_tasks", "own", "expected"),
    [
        (None, None, None, None, 1),
        (3, None, None, None, 3),
        (3, 5, None, None, 5),
        (3, 5, 4, None, 4),
        (3, None, 2, None, 2),
        (3, None, 9, None, 3),
        (3, None, None, {TASKS: 7}, 7),
        (3, 2, None, {TASKS: 7}, 2),
        (3, None, None, {MAX_TASK_PARALLELISM: 2}, 2),
        (3, None, 3, {MAX_TASK_PARALLELISM: 2}, 3),
        (3, None, None, {TASKS: None, MAX_TASK_PARALLELISM: None}, 3),
    ],
)
def test_tasks_are_parallelism_unless_set_and_never_more_than_the_most(
    parallelism: int | None, num_tasks: int | None, max_tasks: int | None, own: Any, expected: int
) -> None:
    b = builder(Spout(config=own), parallelism)
    declarers = [b.get_spout_declarer(), b.set_bolt("count", Batch(config=own), parallelism).shuffle_grouping("words")]
    for declarer in declarers:
        if num_tasks is not None:
            declarer.set_num_tasks(num_tasks)
        if max_tasks is not None:
            declarer.set_max_task_parallelism(max_tasks)
    assert [component.num_tasks for component in b.build_topology().components.values()] == [expected, expected]


# ---------------------------------------------------------------------------------------- configuration


def test_a_declarers_settings_win_over_the_components_own() -> None:
    b = builder(Spout(config={"mine": 1, DEBUG: True, "left": 1}))
    b.get_spout_declarer().add_configuration("mine", 2).set_debug(False).add_configurations({"a": 1, "b": 2})
    b.set_bolt("count", Batch(config={"mine": 1})).add_configuration("mine", None).shuffle_grouping("words")
    topology = b.build_topology()
    assert topology.spout.config == {"mine": 2, DEBUG: False, "left": 1, "a": 1, "b": 2}
    assert topology.bolts[0].config == {"mine": None}


def test_the_last_setting_of_a_key_holds() -> None:
    b = builder()
    b.get_spout_declarer().set_max_spout_pending(3).set_max_spout_pending(4).set_num_tasks(2)
    assert b.build_topology().spout.config == {MAX_SPOUT_PENDING: 4, TASKS: 2}


def test_a_components_settings_are_checked_where_they_are_made() -> None:
    bolt = builder().set_bolt("count", Batch())
    where = "configuration of batch bolt 'count'"
    unknown = f"{where}: unknown key 'topology.debgu'; did you mean 'topology.debug'?"
    refused(UnknownConfigKey, unknown, lambda: bolt.add_configuration("topology.debgu", True))
    refused(
        InvalidConfig,
        f"{where}: topology.debug is 'yes', expected True or False",
        lambda: bolt.set_debug("yes"),  # type: ignore[arg-type]
    )
    refused(InvalidConfig, f"{where}: key 3 is int, expected text", lambda: bolt.add_configurations({3: 1}))  # type: ignore[dict-item]
    refused(
        InvalidConfig,
        f"{where} is None, expected a dict such as Config",
        lambda: bolt.add_configurations(None),  # type: ignore[arg-type]
    )


def test_get_component_configuration_is_checked_when_the_topology_is_built() -> None:
    wrong = builder(Spout(config={"transactional.zookeeper.rot": "/x"}))
    refused(
        UnknownConfigKey,
        "get_component_configuration of transactional spout 'words': unknown key 'transactional.zookeeper.rot'; did "
        "you mean 'transactional.zookeeper.root'?",
        wrong.build_topology,
    )
    no_dict = builder(Spout(config=["debug"]))
    refused(
        InvalidConfig,
        "get_component_configuration of transactional spout 'words' is ['debug'], expected a dict such as Config",
        no_dict.build_topology,
    )
    assert builder(Spout(config=Config(mine=1))).build_topology().spout.config == {"mine": 1}


def test_a_bolt_that_asks_for_tick_tuples_is_told_what_to_do_instead() -> None:
    ticking = builder()
    ticking.set_bolt("flush", Batch(config={Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS: 5})).shuffle_grouping("words")
    refused(
        InvalidConfig,
        "get_component_configuration of batch bolt 'flush': topology.tick.tuple.freq.secs is 5, expected None, since "
        "there are no tick tuples here: do at the end of a batch, in finish_batch",
        ticking.build_topology,
    )


# ---------------------------------------------------------------------------------------- groupings


A, A_S = GlobalStreamId("a"), GlobalStreamId("a", "s")
G, K = Grouping, GroupingKind


@pytest.mark.parametrize(
    ("declare", "source", "grouping"),
    [
        (lambda d: d.shuffle_grouping("a"), A, G(K.SHUFFLE)),
        (lambda d: d.shuffle_grouping("a", "s"), A_S, G(K.SHUFFLE)),
        (lambda d: d.global_grouping("a", "s"), A_S, G(K.GLOBAL)),
        (lambda d: d.none_grouping("a", stream="s"), A_S, G(K.NONE)),
        (lambda d: d.all_grouping("a"), A, G(K.ALL)),
        (lambda d: d.direct_grouping("a", "s"), A_S, G(K.DIRECT)),
        (lambda d: d.local_or_shuffle_grouping("a"), A, G(K.LOCAL_OR_SHUFFLE)),
        (lambda d: d.fields_grouping("a", "w"), A, G(K.FIELDS, ("w",))),
        (lambda d: d.fields_grouping("a", ["w", "v"]), A, G(K.FIELDS, ("w", "v"))),
        (lambda d: d.fields_grouping("a", Fields("w"), "s"), A_S, G(K.FIELDS, ("w",))),
        (lambda d: d.fields_grouping("a", "s", Fields("w")), A_S, G(K.FIELDS, ("w",))),
        (lambda d: d.fields_grouping("a", "w", "s"), A_S, G(K.FIELDS, ("w",))),
        (lambda d: d.partial_key_grouping("a", ["w"]), A, G(K.PARTIAL_KEY, ("w",))),
        (lambda d: d.partial_key_grouping("a", "s", ["w"]), A_S, G(K.PARTIAL_KEY, ("w",))),
        (lambda d: d.grouping("a", G(K.ALL), "s"), A_S, G(K.ALL)),
        (lambda d: d.grouping(A_S, G(K.ALL)), A_S, G(K.ALL)),
    ],
)
def test_every_grouping_takes_a_source_and_a_stream(
    declare: Callable[[BoltDeclarer], BoltDeclarer], source: GlobalStreamId, grouping: Grouping
) -> None:
    declarer = builder().set_bolt("b", Batch())
    assert declare(declarer) is declarer
    assert declarer._build().inputs == {source: grouping}


@pytest.mark.parametrize("arguments", [("a", FirstTask(), "s"), ("a", "s", FirstTask())])
def test_a_custom_grouping_takes_an_object_with_two_methods(arguments: Any) -> None:
    inputs = builder().set_bolt("b", Batch()).custom_grouping(*arguments)._build().inputs
    (grouping,) = inputs.values()
    assert list(inputs) == [GlobalStreamId("a", "s")]
    assert grouping.kind is GroupingKind.CUSTOM
    assert isinstance(grouping.custom, FirstTask)


def test_declarers_are_fluent() -> None:
    b = builder()
    bolt = b.set_bolt("b", Batch())
    assert (
        bolt.set_num_tasks(2)
        .set_debug(True)
        .set_max_task_parallelism(4)
        .add_configuration("mine", 1)
        .add_configurations({"more": 2})
        .shuffle_grouping("words")
        .all_grouping("words", "other")
        is bolt
    )
    spout = b.get_spout_declarer()
    assert spout.set_num_tasks(2).set_debug(True).set_max_spout_pending(3) is spout
    assert b.get_spout_declarer() is spout


def test_two_groupings_on_one_stream_are_refused() -> None:
    bolt = builder().set_bolt("count", Batch()).fields_grouping("words", ["word"])
    refused(
        DuplicateGrouping,
        "batch bolt 'count' has a fields(word) grouping and a shuffle grouping on stream 'default' of 'words'; keep",
        lambda: bolt.shuffle_grouping("words"),
    )
    bolt.shuffle_grouping("words", "other")
    refused(DuplicateGrouping, "on stream 'other' of 'words'; keep one", lambda: bolt.all_grouping("words", "other"))


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda d: d.fields_grouping("words", []), "the fields grouping on words names no field; give at least one"),
        (
            lambda d: d.partial_key_grouping("words", Fields(), "s"),
            "the partial key grouping on words.s names no f",
        ),
        (
            lambda d: d.fields_grouping("words", [1]),
            "the fields grouping on words names the fields (1,), expected",
        ),
        (lambda d: d.fields_grouping("words", None), "the fields grouping on words names the fields (None,), expected"),
        (
            lambda d: d.grouping("words", Grouping(GroupingKind.FIELDS, cast(Any, "word"))),
            "names the fields 'word', expected text",
        ),
        (lambda d: d.grouping("words", "shuffle"), "grouping on words is 'shuffle', expected a Grouping"),
        (lambda d: d.shuffle_grouping(None), "subscribes to component None, expected the id of a component as text"),
        (lambda d: d.shuffle_grouping(""), "subscribes to component '', expected the id of a component as text"),
        (lambda d: d.shuffle_grouping("words", 2), "subscribes to stream 2, expected the id of a stream as text"),
        (lambda d: d.fields_grouping("words", ["word"], ["x"]), "subscribes to stream ['x'], expected the id of a str"),
        (lambda d: d.custom_grouping("words", FirstTask), "FirstTask'>, expected an object with prepare(context, str"),
        (lambda d: d.custom_grouping("words", "s", 7), "the custom grouping on words.s is 7, expected an object with"),
        (
            lambda d: d.grouping("words", Grouping(GroupingKind.CUSTOM)),
            "the custom grouping on words is None, expected",
        ),
    ],
)
def test_a_grouping_that_cannot_be_is_refused_and_leaves_nothing(declare: Callable[[Any], Any], message: str) -> None:
    bolt = builder().set_bolt("count", Batch())
    with pytest.raises(InvalidGrouping, match=re.escape(message)) as caught:
        declare(bolt)
    assert str(caught.value).startswith("batch bolt 'count'")
    assert bolt._build().inputs == {}
