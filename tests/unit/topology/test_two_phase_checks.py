"""Where a bolt that writes into a two-phase sink may stand, and what explain says of it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import pytest

from stormline import (
    BaseBatchBolt,
    Fields,
    MemoryTransactionalSpout,
    Semantic,
    TransactionalTopologyBuilder,
    TwoPhaseCommitBolt,
    compile_topology,
)
from stormline.state import MemoryTwoPhaseSink
from stormline.topology.commit_groups import commit_groups
from stormline.topology.errors import InvalidComponent, NotShippable
from stormline.topology.explain import explain
from tests.kits.components import Store
from tests.kits.two_phase import sunk


def builder() -> TransactionalTopologyBuilder:
    """Return a topology with a committer that emits."""
    made = TransactionalTopologyBuilder("t", "spout", MemoryTransactionalSpout({0: [[1]]}, Fields("n"), 1))
    made.set_bolt("store", Store("checks")).global_grouping("spout")
    return made


class _Emits(TwoPhaseCommitBolt):
    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "n"))


class _Forgets(TwoPhaseCommitBolt):
    def __init__(self) -> None:
        self.own = 1


def test_it_emits_nothing() -> None:
    made = builder()
    made.set_bolt("sink", _Emits(MemoryTwoPhaseSink())).shuffle_grouping("spout")
    message = (
        r"bolt 'sink' \(_Emits\) writes into a two-phase sink and declares the streams \['default'\]; it emits "
        r"nothing, since a batch that was decided is not written again when it is replayed: let what would subscribe "
        r"to it subscribe to what it subscribes to"
    )
    with pytest.raises(InvalidComponent, match=message):
        made.build_topology()


def test_it_stands_behind_no_committer() -> None:
    made = builder()
    made.set_bolt("sink", TwoPhaseCommitBolt(MemoryTwoPhaseSink())).shuffle_grouping("store")
    message = (
        "writes into a two-phase sink and stands behind 'store', whose tuples come in the commit phase; it writes in "
        "the processing phase. Let it subscribe to what comes before that committer, or let a committer write"
    )
    with pytest.raises(InvalidComponent, match=message):
        made.build_topology()


def test_it_is_no_committer() -> None:
    message = r"bolt 'sink' \(TwoPhaseCommitBolt\) writes into a two-phase sink and is marked as committer; .* set_bolt"
    with pytest.raises(InvalidComponent, match=message):
        builder().set_committer_bolt("sink", TwoPhaseCommitBolt(MemoryTwoPhaseSink()))


def test_it_has_a_sink() -> None:
    made = builder()
    made.set_bolt("sink", _Forgets()).shuffle_grouping("spout")
    with pytest.raises(InvalidComponent, match=r"has no sink; let its __init__\(\) call super\(\).__init__\(sink\)"):
        made.build_topology()


class _Connected(MemoryTwoPhaseSink):
    def __init__(self) -> None:
        super().__init__()
        self.connection = sqlite3.connect(":memory:")


def test_what_its_sink_holds_open_is_made_in_the_sink() -> None:
    """The bolt's prepare() comes too late, and is none of the sink's."""
    made, sink = builder(), _Connected()
    made.set_bolt("sink", TwoPhaseCommitBolt(sink)).shuffle_grouping("spout")
    message = (
        r"^the sink of batch bolt 'sink' \(_Connected\) cannot be sent to the executors: attribute 'connection' is a "
        r"sqlite3.Connection, which cannot be pickled \(.*\); .* it in open\(\), not in __init__\(\)"
    )
    with closing(sink.connection), pytest.raises(NotShippable, match=message):
        made.build_topology()


def test_its_topology_commits_each_transaction_by_itself() -> None:
    groups = commit_groups(compile_topology(sunk(MemoryTwoPhaseSink())))
    assert groups.target is None
    assert groups.size_max == 1


@pytest.mark.parametrize(
    ("semantic", "promise"),
    [
        (Semantic.EXACTLY_ONCE, "pre-commits; exactly once, visible at the commit"),
        (Semantic.AT_LEAST_ONCE, "writes; at least once, visible at once: a replay writes again"),
        (Semantic.NONE, "writes; nothing is promised, visible at once: what fails is logged"),
    ],
)
def test_explain_says_what_is_promised(semantic: Semantic, promise: str) -> None:
    text = explain(compile_topology(sunk(MemoryTwoPhaseSink(), semantic=semantic)))
    assert promise in text
    assert ("commits what it has pre-committed" in text) is (semantic is Semantic.EXACTLY_ONCE)


def test_a_batch_bolt_of_another_kind_is_looked_at_no_further() -> None:
    class Plain(BaseBatchBolt):
        def prepare(self, *_: Any) -> None:
            pass

        def execute(self, tup: Any) -> None:
            pass

        def finish_batch(self) -> None:
            pass

    made = builder()
    made.set_bolt("plain", Plain()).shuffle_grouping("spout")
    assert made.build_topology().id == "t"
