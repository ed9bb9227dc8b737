"""BatchSubtopologyBuilder: a group of bolts that is declared once and put into topologies."""

from __future__ import annotations

from collections.abc import Callable

from stormline import BatchSubtopologyBuilder, Fields, InProcessCluster, MemoryTransactionalSpout, compile_topology
from stormline import TransactionalTopologyBuilder as Builder
from stormline.topology.errors import (
    DeclarationError,
    DuplicateComponent,
    DuplicateGrouping,
    InvalidComponent,
    InvalidId,
    InvalidParallelism,
    UnknownComponent,
    UnreachableBolt,
)
from stormline.topology.grouping import GlobalStreamId, GroupingKind
from tests.kits.components import LEDGERS, Basic, Batch, Counting, Store
from tests.kits.declaring import Basic as DeclaredBasic
from tests.kits.declaring import Batch as DeclaredBatch
from tests.kits.declaring import Commits, builder, memory_spout, refused


def counting(ledger: str) -> BatchSubtopologyBuilder:
    """Master → counts → store, the master fed by 'spout'."""
    group = BatchSubtopologyBuilder("master", Basic(), 2)
    group.get_master_declarer().shuffle_grouping("spout")
    group.set_bolt("counts", Counting(), 3).fields_grouping("master", Fields("value"))
    group.set_bolt("store", Store(ledger)).global_grouping("counts")
    return group


def test_its_bolts_are_declared_in_the_topology_as_any_others() -> None:
    extended = Builder("t", "spout", memory_spout())
    counting("x").extend_topology(extended)
    topology = extended.build_topology()
    assert [(bolt.id, bolt.num_tasks, bolt.committer) for bolt in topology.bolts] == [
        ("master", 2, False),
        ("counts", 3, False),
        ("store", 1, True),
    ]
    (source, grouping), = topology.bolts[1].inputs.items()  # fmt: skip
    assert (source, grouping.kind, grouping.fields) == (GlobalStreamId("master"), GroupingKind.FIELDS, ("value",))
    assert compile_topology(topology).components["store"].deferred


def test_its_bolts_run_beside_those_of_the_topology() -> None:
    spout = MemoryTransactionalSpout({0: [1, 2, 3], 1: [4, 5]}, Fields("value"), 3)
    extended = Builder("subtopology", "spout", spout, 2)
    counting("subtopology").extend_topology(extended)
    extended.set_bolt("after", Batch()).shuffle_grouping("store")
    with InProcessCluster() as cluster:
        cluster.submit_topology("t", {}, extended.build_topology()).await_drained(60)
    assert sum(LEDGERS["subtopology"].all()) == 5
    assert len(LEDGERS["subtopology"].all()) == 3  # every task of 'counts' finishes the batch


def test_one_group_extends_two_topologies_with_what_was_said_until_then() -> None:
    first, second = Builder("one", "spout", memory_spout()), Builder("two", "spout", memory_spout())
    group = BatchSubtopologyBuilder("master", DeclaredBasic())
    group.get_master_declarer().shuffle_grouping("spout").set_num_tasks(2)
    group.extend_topology(first)
    group.get_master_declarer().set_num_tasks(5)
    group.set_bolt("more", DeclaredBatch()).shuffle_grouping("master")
    group.extend_topology(second)
    assert [(bolt.id, bolt.num_tasks) for bolt in first.build_topology().bolts] == [("master", 2)]
    assert [(bolt.id, bolt.num_tasks) for bolt in second.build_topology().bolts] == [("master", 5), ("more", 1)]


def test_what_is_wrong_with_a_bolt_is_told_where_it_is_declared() -> None:
    group = BatchSubtopologyBuilder("master", DeclaredBasic())
    cases: list[tuple[type[DeclarationError], str, Callable[[], object]]] = [
        (InvalidId, "bolt id '__m' begins with '__'", lambda: BatchSubtopologyBuilder("__m", DeclaredBasic())),
        (InvalidId, "bolt id ['a']: expected non-empty text", lambda: group.set_bolt(["a"], DeclaredBasic())),  # type: ignore[arg-type]
        (InvalidComponent, "bolt 'b' is a str, expected an object of", lambda: group.set_bolt("b", "x")),  # type: ignore[arg-type]
        (InvalidComponent, "bolt 'b' is a spout", lambda: group.set_bolt("b", memory_spout())),  # type: ignore[arg-type]
        (InvalidParallelism, "parallelism is 0", lambda: group.set_bolt("b", DeclaredBatch(), 0)),
        (DuplicateComponent, "bolt 'master' is declared twice", lambda: group.set_bolt("master", DeclaredBatch())),
        (
            DuplicateGrouping,
            "keep one",
            lambda: group.set_bolt("c", Commits()).shuffle_grouping("master").global_grouping("master"),
        ),
    ]
    for error, message, call in cases:
        refused(error, message, call)


def test_what_is_wrong_with_the_whole_is_told_when_it_is_built() -> None:
    taken = builder()
    taken.set_bolt("counts", DeclaredBatch()).shuffle_grouping("words")
    group = counting("x")
    refused(DuplicateComponent, "bolt 'counts' is declared twice", lambda: group.extend_topology(taken))
    unfed = builder()
    BatchSubtopologyBuilder("master", DeclaredBasic()).extend_topology(unfed)
    refused(UnreachableBolt, "can reach bolt(s) ['master']", unfed.build_topology)
    other = builder()
    counting("x").extend_topology(other)
    refused(UnknownComponent, "'spout'", other.build_topology)
