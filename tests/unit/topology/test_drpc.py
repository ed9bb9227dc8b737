"""LinearDRPCTopologyBuilder: what a function may be declared as, and what the error says where it may not."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from stormline import Fields, LinearDRPCTopologyBuilder, LocalDRPC
from stormline.topology.bolt_declarer import BoltDeclarer
from stormline.topology.drpc import LinearDRPCInputDeclarer
from stormline.topology.errors import (
    DuplicateGrouping,
    InvalidComponent,
    InvalidGrouping,
    InvalidId,
    InvalidParallelism,
    InvalidStream,
    NoRemoteDRPC,
    UnknownField,
)
from stormline.topology.grouping import GlobalStreamId, GroupingKind
from tests.kits.declaring import Basic, Batch, Commits, FirstTask, memory_spout, refused

DRPC = LocalDRPC()


def function() -> LinearDRPCTopologyBuilder:
    return LinearDRPCTopologyBuilder("reach")


def test_a_function_is_a_line_of_bolts_behind_its_requests() -> None:
    builder = function()
    builder.add_bolt(Basic(), 3)
    builder.add_bolt(Batch(), 2).fields_grouping(Fields("tx", "word")).set_num_tasks(4).set_debug(True)
    builder.add_bolt(Batch()).add_configuration("mine", 1).add_configurations({"yours": 2}).shuffle_grouping()
    made = builder.create_local_topology(DRPC)
    assert (made.function, made.drpc, made.topology.id) == ("reach", DRPC, "reach")
    shape = [
        (bolt.id, bolt.num_tasks, [(source, grouping.kind) for source, grouping in bolt.inputs.items()])
        for bolt in made.topology.bolts
    ]
    assert shape == [
        ("bolt0", 3, [(GlobalStreamId("prepare-request"), GroupingKind.NONE)]),
        ("bolt1", 4, [(GlobalStreamId("bolt0"), GroupingKind.FIELDS)]),
        ("bolt2", 1, [(GlobalStreamId("bolt1"), GroupingKind.SHUFFLE)]),
    ]
    assert made.topology.bolts[1].config["topology.debug"] is True
    assert made.topology.bolts[2].config == {"mine": 1, "yours": 2}
    assert made.topology.spout.streams["default"].fields == Fields("request", "args")


GROUPINGS: list[tuple[GroupingKind, Callable[[LinearDRPCInputDeclarer], object]]] = [
    (GroupingKind.SHUFFLE, lambda bolt: bolt.shuffle_grouping("s")),
    (GroupingKind.FIELDS, lambda bolt: bolt.fields_grouping(["word"], "s")),
    (GroupingKind.FIELDS, lambda bolt: bolt.fields_grouping("s", ["word"])),
    (GroupingKind.GLOBAL, lambda bolt: bolt.global_grouping("s")),
    (GroupingKind.NONE, lambda bolt: bolt.none_grouping("s")),
    (GroupingKind.ALL, lambda bolt: bolt.all_grouping("s")),
    (GroupingKind.LOCAL_OR_SHUFFLE, lambda bolt: bolt.local_or_shuffle_grouping("s")),
    (GroupingKind.PARTIAL_KEY, lambda bolt: bolt.partial_key_grouping(["word"], "s")),
    (GroupingKind.CUSTOM, lambda bolt: bolt.custom_grouping(FirstTask(), "s")),
    (GroupingKind.DIRECT, lambda bolt: bolt.direct_grouping("s")),
]


@pytest.mark.parametrize(("kind", "group"), GROUPINGS)
def test_every_grouping_is_on_the_bolt_before(kind: GroupingKind, group: Callable[[Any], object]) -> None:
    builder = function()
    builder.add_bolt(Basic({"s": (["tx", "word"], kind is GroupingKind.DIRECT)}))
    bolt = builder.add_bolt(Batch())
    assert group(bolt) is bolt
    (source, grouping), = builder.create_local_topology(DRPC).topology.bolts[1].inputs.items()  # fmt: skip
    assert (source, grouping.kind) == (GlobalStreamId("bolt0", "s"), kind)


def test_every_grouping_of_a_bolt_is_there() -> None:
    def groupings(declarer: type) -> set[str]:
        return {name for name in dir(declarer) if name.endswith("_grouping")}

    assert groupings(LinearDRPCInputDeclarer) == groupings(BoltDeclarer)


@pytest.mark.parametrize("name", ["", "a b", "a/b", None, 3])
def test_a_function_has_a_name_as_topologies_have(name: Any) -> None:
    refused(
        InvalidId,
        f"DRPC function {name!r}: expected 1 to 128 letters, digits, '_', '.' or '-'",
        lambda: LinearDRPCTopologyBuilder(name),
    )


def test_what_is_wrong_with_a_bolt_is_told_where_it_is_added() -> None:
    refused(InvalidComponent, "bolt 'bolt0' is a spout", lambda: function().add_bolt(memory_spout()))  # type: ignore[arg-type]
    refused(InvalidParallelism, "parallelism is 0, expected", lambda: function().add_bolt(Batch(), 0))
    refused(
        InvalidComponent,
        "DRPC function 'reach': bolt 0 (Commits) is an ICommitter, and a request has no commit phase; make it a Base",
        lambda: function().add_bolt(Commits()),
    )
    bolt = function().add_bolt(Batch())
    refused(DuplicateGrouping, "keep one", lambda: bolt.shuffle_grouping().global_grouping())


def test_a_bolt_without_a_grouping_is_refused_unless_it_is_the_first() -> None:
    builder = function()
    builder.add_bolt(Basic())
    builder.add_bolt(Batch())
    refused(
        InvalidGrouping,
        "DRPC function 'reach': bolt 1 has no grouping on the bolt before it; say which task gets a tuple, by shuffle_",
        lambda: builder.create_local_topology(DRPC),
    )


def test_the_whole_is_checked_as_a_topology_is() -> None:
    builder = function()
    refused(InvalidComponent, "'reach' has no bolt; give it at least", lambda: builder.create_local_topology(DRPC))
    builder.add_bolt(Basic()).fields_grouping("argz")
    refused(UnknownField, "did you mean 'args'?", lambda: builder.create_local_topology(DRPC))
    refused(
        InvalidComponent,
        "create_local_topology got None, expected a LocalDRPC()",
        lambda: builder.create_local_topology(None),  # type: ignore[arg-type]
    )


def test_the_last_bolt_emits_the_id_and_the_result_and_nothing_else() -> None:
    who = "DRPC function 'reach': the last bolt, 'bolt0' (Basic), declares the"
    for streams, message in [
        ({}, "streams [], expected exactly one, for the result"),
        ({"a": ["tx", "b"], "c": ["tx", "d"]}, "streams ['a', 'c'], expected exactly one, for the result"),
        ({"a": ["tx"]}, "fields ['tx'] on stream 'a', expected two: the request's id, and the result"),
        ({"a": ["tx", "b", "c"]}, "fields ['tx', 'b', 'c'] on stream 'a', expected two"),
    ]:
        builder = function()
        builder.add_bolt(Basic(streams))
        refused(InvalidStream, f"{who} {message}", partial(builder.create_local_topology, DRPC))


@pytest.mark.parametrize(
    "group",
    [
        lambda bolt: bolt.shuffle_grouping(),
        lambda bolt: bolt.fields_grouping("word"),
        lambda bolt: bolt.fields_grouping(["tx", "word"]),
        lambda bolt: bolt.all_grouping(),
        lambda bolt: bolt.custom_grouping(FirstTask()),
    ],
)
def test_one_task_finishes_a_request_or_the_topology_is_refused(group: Callable[[Any], object]) -> None:
    def made(bolt: Any, tasks: int, how: Callable[[Any], object]) -> Any:
        builder = function()
        builder.add_bolt(Basic())
        how(builder.add_bolt(bolt, tasks))
        return builder.create_local_topology(DRPC)

    refused(
        InvalidGrouping,
        "DRPC function 'reach': the last bolt, 'bolt1' (Batch), has 2 tasks, and the tuples of one request may come to "
        "several of them; group them by fields_grouping(['tx']), or give it one task",
        lambda: made(Batch(), 2, group),
    )
    made(Batch(), 1, group)
    made(Basic(), 2, group)
    made(Batch(), 2, lambda bolt: bolt.fields_grouping(["tx"]))
    made(Batch(), 2, lambda bolt: bolt.global_grouping())


def test_a_remote_topology_is_refused_with_what_to_do_instead() -> None:
    refused(
        NoRemoteDRPC,
        "DRPC function 'reach': there are no DRPC servers here, requests are answered in one process; use "
        "create_local_topology(LocalDRPC()), and call its execute(function, args) from a server of your own",
        function().create_remote_topology,
    )
