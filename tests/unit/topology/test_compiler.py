"""compile_topology: phases, stages, transfers."""

from __future__ import annotations

import dataclasses
import itertools
import re
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormline import compile_topology
from stormline.topology.config import MAX_TASK_PARALLELISM
from stormline.topology.errors import InvalidComponent, UnknownComponent
from stormline.topology.graph import graph_of
from stormline.topology.plan import Placement, Plan, Transfer
from stormline.topology.topology import Topology
from tests.kits.declaring import Batch, Bolts, Commits, Spout, builder, memory_spout, plan, topology

LOCAL, EXCHANGE, COMMIT = Transfer.LOCAL, Transfer.EXCHANGE, Transfer.COMMIT


def transfers(compiled: Plan) -> dict[str, Transfer]:
    return {f"{edge.source}>{edge.target}": edge.transfer for edge in compiled.edges}


def stages(compiled: Plan) -> list[tuple[str, ...]]:
    assert [stage.index for stage in compiled.stages] == list(range(len(compiled.stages)))
    return [stage.components for stage in compiled.stages]


# ---------------------------------------------------------------------------------------- shapes


def test_the_seed_example_defers_the_committer_and_all_that_is_downstream_of_it() -> None:
    compiled = plan(
        {
            "A": (["words"], {}),
            "B": (["A"], {"commits": True}),
            "C": (["A", "B"], {}),
            "D": (["C"], {"commits": True}),
        }
    )
    assert {name: planned.deferred for name, planned in compiled.components.items()} == {
        "words": False, "A": False, "B": True, "C": True, "D": True,
    }  # fmt: skip
    assert stages(compiled) == [("words",), ("A",), ("B", "C")]
    assert compiled.components["D"].stage is None
    assert compiled.commit_stages == (("B",), ("C",), ("D",))
    assert transfers(compiled) == {"words>A": EXCHANGE, "A>B": EXCHANGE, "A>C": EXCHANGE, "B>C": COMMIT, "C>D": COMMIT}


def test_a_spout_alone_is_one_stage_and_nothing_commits() -> None:
    compiled = plan({})
    assert (stages(compiled), compiled.commit_stages, compiled.edges) == ([("words",)], (), ())
    assert compiled.spout.tasks == (1, 2)


def test_a_chain_of_shuffles_is_cut_at_every_edge() -> None:
    compiled = plan({"a": (["words"], {}), "b": (["a"], {}), "c": (["b"], {})})
    assert stages(compiled) == [("words",), ("a",), ("b",), ("c",)]
    assert set(transfers(compiled).values()) == {EXCHANGE}


def test_a_chain_of_local_or_shuffles_is_one_stage() -> None:
    chain: Bolts = {
        name: ([f"{source}:local_or_shuffle"], {}) for source, name in itertools.pairwise(["words", *"abc"])
    }
    compiled = plan(chain)
    assert stages(compiled) == [("words", "a", "b", "c")]
    assert set(transfers(compiled).values()) == {LOCAL}


@pytest.mark.parametrize("kind", ["shuffle", "fields", "global", "none", "all", "partial_key", "local_or_shuffle"])
def test_any_grouping_between_single_tasks_is_a_plain_call(kind: str) -> None:
    compiled = plan({"a": ([f"words:{kind}"], {"tasks": 1})}, parallelism=1)
    assert transfers(compiled) == {"words>a": LOCAL}


@pytest.mark.parametrize(
    ("sources", "targets", "transfer"),
    [(2, 2, LOCAL), (2, 3, LOCAL), (1, 5, LOCAL), (3, 2, EXCHANGE), (2, 1, EXCHANGE)],
)
def test_local_or_shuffle_is_local_where_every_source_task_has_a_target_beside_it(
    sources: int, targets: int, transfer: Transfer
) -> None:
    compiled = plan({"a": (["words:local_or_shuffle"], {"tasks": targets})}, parallelism=sources)
    assert transfers(compiled) == {"words>a": transfer}


@pytest.mark.parametrize(("sources", "targets", "transfer"), [(2, 2, LOCAL), (2, 3, EXCHANGE), (1, 5, EXCHANGE)])
def test_none_is_local_where_the_bolt_has_as_many_tasks_so_that_no_task_is_left_idle(
    sources: int, targets: int, transfer: Transfer
) -> None:
    compiled = plan({"a": (["words:none"], {"tasks": targets})}, parallelism=sources)
    assert transfers(compiled) == {"words>a": transfer}


@pytest.mark.parametrize("kind", ["shuffle", "fields", "global", "all", "partial_key"])
def test_other_groupings_between_many_tasks_are_exchanges(kind: str) -> None:
    assert transfers(plan({"a": ([f"words:{kind}"], {})})) == {"words>a": EXCHANGE}


def test_a_local_edge_over_a_cut_is_an_exchange_after_all() -> None:
    compiled = plan(
        {
            "a": (["words:local_or_shuffle"], {}),
            "b": (["a"], {}),
            "c": (["a:local_or_shuffle", "b:local_or_shuffle"], {}),
        }
    )
    assert stages(compiled) == [("words", "a"), ("b", "c")]
    assert transfers(compiled) == {"words>a": LOCAL, "a>b": EXCHANGE, "a>c": EXCHANGE, "b>c": LOCAL}


def test_a_diamond_meets_after_its_longer_side() -> None:
    compiled = plan({"a": (["words"], {}), "b": (["words"], {}), "c": (["b"], {}), "d": (["a", "c"], {})})
    assert stages(compiled) == [("words",), ("a", "b"), ("c",), ("d",)]


def test_a_committer_in_the_middle_splits_the_graph() -> None:
    compiled = plan(
        {
            "a": (["words"], {}),
            "store": (["a"], {"commits": True}),
            "after": (["store"], {}),
            "last": (["after", "a"], {}),
            "aside": (["a"], {}),
        }
    )
    assert [set(stage) for stage in stages(compiled)] == [{"words"}, {"a"}, {"store", "aside", "last"}]
    assert compiled.components["after"].stage is None
    assert compiled.commit_stages == (("store",), ("after",), ("last",))
    assert not compiled.components["aside"].deferred


def test_what_only_hears_deferred_bolts_has_no_place_in_the_processing_phase() -> None:
    compiled = plan({"store": (["words"], {"commits": True}), "x": (["store"], {}), "y": (["x", "store"], {})})
    assert [compiled.components[name].stage for name in ("store", "x", "y")] == [1, None, None]
    assert [compiled.components[name].commit_stage for name in ("store", "x", "y")] == [0, 1, 2]


def test_committers_side_by_side_share_a_turn() -> None:
    compiled = plan({"x": (["words"], {"commits": True}), "y": (["words"], {"commits": True}), "z": (["x", "y"], {})})
    assert compiled.commit_stages == (("x", "y"), ("z",))


def test_a_committer_downstream_of_a_committer_has_the_later_turn_and_no_second_one() -> None:
    compiled = plan({"x": (["words"], {"commits": True}), "y": (["words", "x"], {"commits": True})})
    assert compiled.commit_stages == (("x",), ("y",))
    assert compiled.components["y"].stage == 1


def test_a_spout_that_emits_on_the_driver_has_the_first_stage_for_itself() -> None:
    compiled = plan({"a": (["words:local_or_shuffle"], {"tasks": 1})}, memory_spout(), parallelism=1)
    assert [stage.placement for stage in compiled.stages] == [Placement.DRIVER, Placement.EXECUTORS]
    assert stages(compiled) == [("words",), ("a",)]
    assert transfers(compiled) == {"words>a": EXCHANGE}
    assert [stage.placement for stage in plan({"a": (["words"], {})}).stages] == [Placement.EXECUTORS] * 2


def test_several_streams_of_one_component_are_several_edges() -> None:
    b = builder(Spout({"default": ["tx", "word"], "loud": ["tx"]}))
    b.set_bolt("a", Batch()).shuffle_grouping("words").all_grouping("words", "loud")
    compiled = compile_topology(b.build_topology())
    assert [(edge.index, edge.stream) for edge in compiled.edges] == [(0, "default"), (1, "loud")]
    assert [edge.index for edge in compiled.out_edges("words", "loud")] == [1]
    assert [edge.index for edge in compiled.in_edges("a")] == [0, 1]
    assert compiled.out_edges("a", "default") == []


# ---------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("wrong", [None, builder(), {}])
def test_what_is_no_topology_is_refused(wrong: Any) -> None:
    message = f"compile_topology got a {type(wrong).__name__}, expected what build_topology() returns"
    with pytest.raises(InvalidComponent, match=re.escape(message)):
        compile_topology(wrong)


def test_a_topology_made_by_hand_is_checked_again() -> None:
    built = topology({"a": (["words"], {})})
    with pytest.raises(UnknownComponent, match="bolt 'a' subscribes to component 'words', which does not exist"):
        compile_topology(Topology("t", dataclasses.replace(built.spout, id="other"), built.bolts))


# ---------------------------------------------------------------------------------------- describing


def test_a_plan_describes_what_durable_state_depends_on() -> None:
    b = builder(Spout({"default": ["tx", "word"], "b": (["tx"], True)}))
    b.set_bolt("a", Commits(), 3).fields_grouping("words", ["word"]).direct_grouping("words", "b")
    assert compile_topology(b.build_topology()).describe() == {
        "spout 'words'": {
            "kind": "transactional spout",
            "committer": False,
            "parallelism": 1,
            "streams": {
                "b": {"fields": ["tx"], "direct": True},
                "default": {"fields": ["tx", "word"], "direct": False},
            },
            "groupings": {},
        },
        "bolt 'a'": {
            "kind": "batch bolt",
            "committer": True,
            "parallelism": 3,
            "streams": {"default": {"fields": ["tx", "word"], "direct": False}},
            "groupings": {"'words'": "fields(word)", "'words', stream 'b'": "direct"},
        },
    }


def test_a_stream_and_a_component_with_a_dot_are_described_apart() -> None:
    b = builder(Spout({"default": ["tx"], "b": ["tx"]}))
    b.set_bolt("words.b", Batch()).shuffle_grouping("words")
    b.set_bolt("x", Batch()).shuffle_grouping("words", "b").shuffle_grouping("words.b")
    assert len(compile_topology(b.build_topology()).describe()["bolt 'x'"]["groupings"]) == 2


# ---------------------------------------------------------------------------------------- properties

KINDS = ["shuffle", "fields", "global", "none", "all", "local_or_shuffle", "partial_key"]


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    names = [f"b{i}" for i in range(draw(st.integers(0, 8)))]
    bolts: Bolts = {}
    for i, name in enumerate(names):
        sources = draw(st.lists(st.sampled_from(["words", *names[:i]]), min_size=1, max_size=4, unique=True))
        kinds = [draw(st.sampled_from(KINDS)) for _ in sources]
        bolts[name] = (
            [f"{source}:{kind}" for source, kind in zip(sources, kinds, strict=True)],
            {"tasks": draw(st.integers(1, 4)), "commits": draw(st.integers(0, 3)) == 0},
        )
    shuffled = dict(draw(st.permutations(list(bolts.items()))))
    spout = draw(st.sampled_from([Spout(), memory_spout()]))
    return topology(shuffled, spout, draw(st.integers(1, 4)))


@settings(max_examples=150, deadline=None)
@given(topologies(), st.one_of(st.none(), st.integers(1, 5)))
def test_every_plan_keeps_the_rules_of_the_two_phases(built: Topology, cap: int | None) -> None:
    compiled = compile_topology(built, {MAX_TASK_PARALLELISM: cap})
    graph = graph_of(built)
    committers = {bolt.id for bolt in built.bolts if bolt.committer}
    downstream = committers.union(*(nx.descendants(graph, name) for name in committers))

    for name, planned in compiled.components.items():
        # A component finishes in exactly one phase, and has a place there.
        assert planned.deferred == (name in downstream)
        assert planned.stage is not None or planned.deferred
        assert [name in stage.components for stage in compiled.stages].count(True) == (planned.stage is not None)
        assert [name in turn for turn in compiled.commit_stages].count(True) == planned.deferred
        heard_early = any(source.component not in downstream for source in planned.component.inputs)
        assert (planned.stage is not None) == (heard_early or name == "words")
    assert all(stage.components for stage in compiled.stages)
    assert all(compiled.commit_stages)

    for edge in compiled.edges:
        source, target = compiled.components[edge.source], compiled.components[edge.target]
        if source.deferred:
            assert edge.transfer is COMMIT
            assert source.commit_stage is not None
            assert target.commit_stage is not None
            assert source.commit_stage < target.commit_stage
            continue
        assert source.stage is not None
        assert target.stage is not None
        if edge.transfer is LOCAL:
            assert source.stage == target.stage
            assert len(target.tasks) >= len(source.tasks)
            assert compiled.stages[source.stage].placement is Placement.EXECUTORS
        else:
            assert edge.transfer is EXCHANGE
            assert source.stage < target.stage

    # Within a stage, and within a turn, no component stands before one that it hears.
    for group in [*(stage.components for stage in compiled.stages), *compiled.commit_stages]:
        for i, name in enumerate(group):
            assert not {source.component for source in compiled.components[name].component.inputs} & set(group[i:])
    assert [edge.index for edge in compiled.edges] == list(range(len(compiled.edges)))
    assert len(compiled.edges) == sum(len(bolt.inputs) for bolt in built.bolts)

    tasks = [task for planned in compiled.components.values() for task in planned.tasks]
    assert tasks == list(range(1, len(tasks) + 1))
    assert all(1 <= len(planned.tasks) <= (cap or 4) for planned in compiled.components.values())
    assert compiled.component_of_task() == {t: n for n, planned in compiled.components.items() for t in planned.tasks}
    assert compile_topology(built, {MAX_TASK_PARALLELISM: cap}) == compiled
