"""Checks of the graph: every source exists, no cycle, the spout reaches every bolt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stormline import TransactionalTopologyBuilder
from stormline.topology.errors import (
    CyclicTopology,
    DeclarationError,
    InvalidGrouping,
    UnknownComponent,
    UnknownField,
    UnknownStream,
    UnreachableBolt,
)
from stormline.topology.graph import graph_of
from tests.kits.declaring import Batch, FirstTask, Spout, builder


def words() -> TransactionalTopologyBuilder:
    """Return a builder whose spout has a default, a 'loud' and a direct stream."""
    return builder(Spout({"default": ["tx", "word"], "loud": ["tx", "word", "n"], "straight": (["tx"], True)}))


def refused(error: type[DeclarationError], message: str, declare: Callable[[Any], Any]) -> None:
    b = words()
    declare(b.set_bolt("count", Batch()))
    with pytest.raises(error) as caught:
        b.build_topology()
    assert str(caught.value) == message


def test_the_graph_has_a_node_a_component_and_an_edge_a_subscription() -> None:
    b = words()
    b.set_bolt("a", Batch()).shuffle_grouping("words").all_grouping("words", "loud")
    b.set_bolt("b", Batch()).shuffle_grouping("a")
    graph = graph_of(b.build_topology())
    assert list(graph.nodes) == ["words", "a", "b"]
    assert sorted(graph.edges(keys=True)) == [("a", "b", "default"), ("words", "a", "default"), ("words", "a", "loud")]


def test_an_unknown_component_is_named_with_those_that_exist() -> None:
    refused(
        UnknownComponent,
        "bolt 'count' subscribes to component 'wrods', which does not exist; there are ['words', 'count']; "
        "did you mean 'words'?",
        lambda bolt: bolt.shuffle_grouping("wrods"),
    )
    refused(
        UnknownComponent,
        "bolt 'count' subscribes to component 'x', which does not exist; there are ['words', 'count']",
        lambda bolt: bolt.shuffle_grouping("words").shuffle_grouping("x"),
    )


def test_an_unknown_stream_is_named_with_those_declared() -> None:
    refused(
        UnknownStream,
        "bolt 'count' subscribes to stream 'luod' of 'words', which declares ['default', 'loud', 'straight']; "
        "did you mean 'loud'?",
        lambda bolt: bolt.shuffle_grouping("words", "luod"),
    )


def test_a_component_that_declares_nothing_cannot_be_subscribed_to() -> None:
    b = builder()
    b.set_bolt("silent", Batch({})).shuffle_grouping("words")
    b.set_bolt("count", Batch()).shuffle_grouping("silent")
    with pytest.raises(UnknownStream, match=r"subscribes to stream 'default' of 'silent', which declares \[\]$"):
        b.build_topology()


@pytest.mark.parametrize("kind", ["fields", "partial_key"])
@pytest.mark.parametrize(
    ("fields", "stream", "message"),
    [
        (
            ["wrod"],
            "default",
            "bolt 'count' groups on field 'wrod'; stream 'default' of 'words' declares ['tx', 'word']; "
            "did you mean 'word'?",
        ),
        (
            ["word", "n"],
            "default",
            "bolt 'count' groups on field 'n'; stream 'default' of 'words' declares ['tx', 'word']",
        ),
    ],
)
def test_an_unknown_field_is_named_with_those_declared(kind: str, fields: Any, stream: str, message: str) -> None:
    refused(UnknownField, message, lambda bolt: getattr(bolt, f"{kind}_grouping")("words", fields, stream))


def test_a_field_of_another_stream_is_unknown() -> None:
    b = words()
    b.set_bolt("count", Batch()).fields_grouping("words", ["n"], "loud")
    b.build_topology()


@pytest.mark.parametrize(
    ("declare", "kind"),
    [
        (lambda bolt: bolt.shuffle_grouping("words", "straight"), "shuffle"),
        (lambda bolt: bolt.all_grouping("words", "straight"), "all"),
        (lambda bolt: bolt.fields_grouping("words", ["tx"], "straight"), "fields"),
        (lambda bolt: bolt.custom_grouping("words", FirstTask(), "straight"), "custom"),
    ],
)
def test_a_direct_stream_takes_a_direct_grouping_only(declare: Callable[[Any], Any], kind: str) -> None:
    refused(
        InvalidGrouping,
        f"bolt 'count' has a {kind} grouping on stream 'straight' of 'words', which is direct; use direct_grouping",
        declare,
    )


def test_a_direct_grouping_takes_a_direct_stream_only() -> None:
    refused(
        InvalidGrouping,
        "bolt 'count' has a direct grouping on stream 'loud' of 'words', which is not direct; "
        "declare the stream with direct=True",
        lambda bolt: bolt.direct_grouping("words", "loud"),
    )


@pytest.mark.parametrize(
    ("groupings", "paths"),
    [
        ({"a": ["words", "a"]}, ["a → a"]),
        ({"a": ["words", "b"], "b": ["a"]}, ["a → b → a", "b → a → b"]),
        (
            {"a": ["words"], "b": ["a", "d"], "c": ["b"], "d": ["c"]},
            ["b → c → d → b", "c → d → b → c", "d → b → c → d"],
        ),
        ({"a": ["words"], "b": ["c"], "c": ["b"]}, ["b → c → b", "c → b → c"]),
    ],
)
def test_a_cycle_is_shown_as_a_path(groupings: dict[str, list[str]], paths: list[str]) -> None:
    b = words()
    for bolt, sources in groupings.items():
        declarer = b.set_bolt(bolt, Batch())
        for source in sources:
            declarer.shuffle_grouping(source)
    with pytest.raises(CyclicTopology) as caught:
        b.build_topology()
    messages = [
        f"topology 'counts' has a cycle: {path}; a batch must come to an end, so remove one of these groupings"
        for path in paths
    ]
    assert str(caught.value) in messages


def test_bolts_that_no_tuple_can_reach_are_named() -> None:
    b = words()
    b.set_bolt("count", Batch()).shuffle_grouping("words")
    b.set_bolt("lost", Batch())
    b.set_bolt("after", Batch()).shuffle_grouping("lost")
    with pytest.raises(UnreachableBolt) as caught:
        b.build_topology()
    assert str(caught.value) == (
        "topology 'counts': no tuple of spout 'words' can reach bolt(s) ['lost', 'after']; "
        "give each a grouping on the spout or on a bolt that it reaches"
    )


def test_a_bolt_may_hear_an_unreachable_one_if_the_spout_reaches_it_otherwise() -> None:
    b = words()
    b.set_bolt("lost", Batch())
    b.set_bolt("count", Batch()).shuffle_grouping("words").shuffle_grouping("lost")
    with pytest.raises(UnreachableBolt, match=r"bolt\(s\) \['lost'\];"):
        b.build_topology()


def test_a_long_chain_is_checked_without_recursion() -> None:
    b = words()
    for i in range(1200):
        b.set_bolt(f"b{i}", Batch()).shuffle_grouping("words" if i == 0 else f"b{i - 1}")
    assert len(b.build_topology().bolts) == 1200
