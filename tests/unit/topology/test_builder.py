"""TransactionalTopologyBuilder: what may be declared, and what the error says where it may not."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from stormline import ICommitter, ICommitterTransactionalSpout, ITransactionalSpout
from stormline.topology.builder import TransactionalTopologyBuilder
from stormline.topology.errors import (
    DeclarationError,
    DuplicateComponent,
    InvalidComponent,
    InvalidId,
    InvalidParallelism,
    InvalidStream,
)
from stormline.topology.grouping import GlobalStreamId
from stormline.topology.topology import ComponentKind
from tests.kits.declaring import (
    Basic,
    Batch,
    Commits,
    OpaqueSpout,
    PartitionedSpout,
    Spout,
    builder,
    memory_spout,
    refused,
)


class CommitterSpout(Spout, ICommitterTransactionalSpout):
    emits_on_executors = False


class BasicCommitter(Basic, ICommitter):
    pass


class TwoSpouts(PartitionedSpout, ITransactionalSpout):  # type: ignore[misc]
    pass


class BasicAndBatch(Basic, Batch):  # type: ignore[misc]
    pass


# ---------------------------------------------------------------------------------------- spout and ids


@pytest.mark.parametrize(
    ("spout", "kind"),
    [
        (Spout(), ComponentKind.TRANSACTIONAL_SPOUT),
        (PartitionedSpout(), ComponentKind.PARTITIONED_SPOUT),
        (OpaqueSpout(), ComponentKind.OPAQUE_SPOUT),
        (memory_spout(), ComponentKind.PARTITIONED_SPOUT),
        (CommitterSpout(), ComponentKind.TRANSACTIONAL_SPOUT),
    ],
)
def test_a_spout_is_one_of_three_kinds(spout: Any, kind: ComponentKind) -> None:
    topology = builder(spout).build_topology()
    assert (topology.id, topology.spout.id, topology.spout.kind, topology.spout.obj) == ("counts", "words", kind, spout)
    assert topology.spout.num_tasks == 1


@pytest.mark.parametrize(
    ("spout", "what"),
    [
        (Batch(), "a Batch"),
        (None, "a NoneType"),
        (Spout, "a class Spout (pass an object of it)"),
        (TwoSpouts(), "a TwoSpouts"),
        (type("Marker", (ICommitterTransactionalSpout,), {})(), "a Marker"),
    ],
)
def test_what_is_no_spout_or_two_kinds_of_it_is_refused(spout: Any, what: str) -> None:
    refused(
        InvalidComponent,
        f"spout 'words' is {what}, expected an object of exactly one of ITransactionalSpout, "
        "IPartitionedTransactionalSpout, IOpaquePartitionedTransactionalSpout",
        lambda: TransactionalTopologyBuilder("counts", "words", spout),
    )


@pytest.mark.parametrize("topology_id", ["a", "_", "word-count_2.1", "0", "x" * 128])
def test_a_topology_id_may_be_anything_that_names_a_znode(topology_id: str) -> None:
    assert TransactionalTopologyBuilder(topology_id, "words", Spout()).build_topology().id == topology_id


@pytest.mark.parametrize("topology_id", ["", "/", "a/b", "..", ".", "-x", "a b", "ü", "a\n", "x" * 129, None, 3, b"a"])
def test_a_topology_id_that_names_no_znode_is_refused(topology_id: Any) -> None:
    refused(
        InvalidId,
        f"topology id {topology_id!r}: expected 1 to 128 letters, digits, '_', '.' or '-', not beginning",
        lambda: TransactionalTopologyBuilder(topology_id, "words", Spout()),
    )


@pytest.mark.parametrize("component", ["", None, 3, ["a"]])
def test_a_component_id_is_text(component: Any) -> None:
    message = f"{component!r}: expected non-empty text"
    refused(InvalidId, "spout id " + message, lambda: TransactionalTopologyBuilder("t", component, Spout()))
    refused(InvalidId, "bolt id " + message, lambda: builder().set_bolt(component, Batch()))
    refused(InvalidId, "bolt id " + message, lambda: builder().set_committer_bolt(component, Batch()))


@pytest.mark.parametrize("component", ["wörter", "数", "count words", "слова", "a.b/c", "x" * 128])
def test_a_component_id_may_be_in_any_language(component: str) -> None:
    builder().set_bolt(component, Batch())


@pytest.mark.parametrize(
    ("component", "problem"),
    [
        ("x" * 129, "has 129 characters, at most 128 are taken"),
        ("a\nb", "holds white space at its ends, or control or invisible characters"),
        (" a", "holds white space at its ends, or control or invisible characters"),
        ("a\u202eb", "holds white space at its ends, or control or invisible characters"),
        ("a\u200bb", "holds white space at its ends, or control or invisible characters"),
        ("\uff41", "has another form of characters that look the same; expected 'a'"),
        ("e\u0301", "has another form of characters that look the same; expected 'é'"),
        ("w\u043erds", "mixes CYRILLIC and LATIN letters, which look alike"),
    ],
)
def test_an_id_that_cannot_be_told_from_others_is_refused(component: str, problem: str) -> None:
    message = f"{component[:128]!a} {problem}; give it a name that is told from others at a glance"
    refused(InvalidId, "spout id " + message, lambda: TransactionalTopologyBuilder("t", component, Spout()))
    refused(InvalidId, "bolt id " + message, lambda: builder().set_bolt(component, Batch()))


def test_an_id_that_begins_with_two_underscores_is_ours() -> None:
    message = "'__x' begins with '__', which is kept for Stormline's own components"
    refused(InvalidId, "spout id " + message, lambda: TransactionalTopologyBuilder("t", "__x", Spout()))
    refused(InvalidId, "bolt id " + message, lambda: builder().set_bolt("__x", Batch()))
    builder().set_bolt("_x", Batch())


# ---------------------------------------------------------------------------------------- bolts


@pytest.mark.parametrize(
    ("bolt", "kind", "committer"),
    [
        (Batch(), ComponentKind.BATCH_BOLT, False),
        (Basic(), ComponentKind.BASIC_BOLT, False),
        (Commits(), ComponentKind.BATCH_BOLT, True),
    ],
)
def test_set_bolt_knows_a_committer_by_its_marker(bolt: Any, kind: ComponentKind, committer: bool) -> None:
    b = builder()
    b.set_bolt("count", bolt, 3).shuffle_grouping("words")
    (built,) = b.build_topology().bolts
    assert (built.id, built.kind, built.committer, built.num_tasks, built.obj) == ("count", kind, committer, 3, bolt)


@pytest.mark.parametrize("bolt", [Batch(), Commits()])
def test_set_committer_bolt_makes_any_batch_bolt_a_committer(bolt: Any) -> None:
    b = builder()
    b.set_committer_bolt("count", bolt).shuffle_grouping("words")
    assert b.build_topology().bolts[0].committer


def test_a_basic_bolt_is_no_committer() -> None:
    remedy = "is a BasicBolt and marked as committer; it never learns that a batch is finished: make it a BaseTrans"
    refused(InvalidComponent, f"bolt 'b' (BasicCommitter) {remedy}", lambda: builder().set_bolt("b", BasicCommitter()))
    refused(
        InvalidComponent,
        f"bolt 'b' (Basic) {remedy}",
        lambda: builder().set_committer_bolt("b", Basic()),  # type: ignore[arg-type]
    )


def test_whether_a_bolt_skips_empty_batches_is_true_or_false() -> None:
    bolt = Batch()
    bolt.skips_empty = "no"  # type: ignore[assignment]
    refused(
        InvalidComponent,
        "bolt 'b' (Batch) has skips_empty = 'no', expected True or False",
        lambda: builder().set_bolt("b", bolt),
    )


@pytest.mark.parametrize("again", ["set_bolt", "set_committer_bolt"])
def test_a_repeated_id_is_refused(again: str) -> None:
    b = builder()
    b.set_bolt("count", Batch())
    refused(
        DuplicateComponent,
        "bolt 'count' is declared twice; give each bolt its own id",
        lambda: getattr(b, again)("count", Batch()),
    )
    refused(
        DuplicateComponent,
        "bolt 'words' has the id of the spout; give it another one",
        lambda: getattr(b, again)("words", Batch()),
    )


@pytest.mark.parametrize("spout", [Spout(), OpaqueSpout(), memory_spout()])
def test_a_second_spout_is_refused(spout: Any) -> None:
    refused(
        InvalidComponent,
        f"bolt 'more' is a spout ({type(spout).__name__}); a topology has one spout: build a second topology",
        lambda: builder().set_bolt("more", spout),
    )


@pytest.mark.parametrize(
    ("bolt", "what"),
    [
        (Batch, "a class Batch (pass an object of it)"),
        (BasicAndBatch(), "a BasicAndBatch"),
        (object(), "a object"),
        (type("Marker", (ICommitter,), {})(), "a Marker"),
    ],
)
def test_what_is_no_bolt_or_both_kinds_of_it_is_refused(bolt: Any, what: str) -> None:
    refused(
        InvalidComponent,
        f"bolt 'b' is {what}, expected an object of exactly one of IBasicBolt, IBatchBolt, IArrowBatchBolt",
        lambda: builder().set_bolt("b", bolt),
    )


def test_a_refused_bolt_leaves_its_id_free() -> None:
    b = builder()
    with pytest.raises(InvalidComponent):
        b.set_bolt("count", object())  # type: ignore[arg-type]
    with pytest.raises(InvalidParallelism):
        b.set_bolt("count", Batch(), 0)
    b.set_bolt("count", Batch()).shuffle_grouping("words")
    assert [bolt.id for bolt in b.build_topology().bolts] == ["count"]


# ---------------------------------------------------------------------------------------- building


def test_an_empty_topology_is_a_spout_alone() -> None:
    assert builder().build_topology().bolts == ()


def test_bolts_stand_in_the_order_of_their_declaration() -> None:
    b = builder()
    for name in ("z", "a", "m"):
        b.set_bolt(name, Batch()).shuffle_grouping("words")
    assert list(b.build_topology().components) == ["words", "z", "a", "m"]


def test_a_bolt_may_subscribe_to_several_streams_and_components() -> None:
    b = builder(Spout({"default": ["tx"], "loud": ["tx", "word"]}))
    b.set_bolt("split", Batch()).shuffle_grouping("words")
    b.set_bolt("join", Batch()).shuffle_grouping("words").fields_grouping("words", ["word"], "loud").all_grouping(
        "split"
    )
    sources = list(b.build_topology().components["join"].inputs)
    assert sources == [GlobalStreamId("words"), GlobalStreamId("words", "loud"), GlobalStreamId("split")]


def test_a_built_topology_does_not_change_with_what_is_declared_later() -> None:
    kept: list[Any] = []

    class Keeps(Batch):
        def declare_output_fields(self, declarer: Any) -> None:
            super().declare_output_fields(declarer)
            kept.append(declarer)

    b = builder()
    bolt = b.set_bolt("count", Keeps()).shuffle_grouping("words")
    topology = b.build_topology()
    bolt.set_debug(True).shuffle_grouping("words", "late")
    b.set_bolt("more", Batch())
    kept[0].declare_stream("late", ["tx"])
    assert [bolt.id for bolt in topology.bolts] == ["count"]
    assert topology.bolts[0].config == {}
    assert list(topology.bolts[0].inputs) == [GlobalStreamId("words")]
    assert list(topology.bolts[0].streams) == ["default"]


def test_topologies_of_the_same_objects_are_equal_and_print_without_them() -> None:
    spout, bolt = Spout(), Batch()

    def build(parallelism: int) -> Any:
        b = builder(spout)
        b.set_bolt("count", bolt, parallelism).shuffle_grouping("words")
        return b.build_topology()

    assert build(2) == build(2) != build(3)
    assert "object at 0x" not in repr(build(2))


def test_a_wrong_declaration_of_streams_names_the_component() -> None:
    b = builder(Spout({"default": ["tx", "tx"]}))
    refused(InvalidStream, "component 'words', stream 'default': Fields('tx', 'tx'): field 'tx' is", b.build_topology)


def test_an_error_of_the_users_own_code_comes_through_unchanged() -> None:
    class Broken(Batch):
        def declare_output_fields(self, declarer: Any) -> None:
            raise ZeroDivisionError("mine")

    b = builder()
    b.set_bolt("count", Broken()).shuffle_grouping("words")
    with pytest.raises(ZeroDivisionError, match="mine"):
        b.build_topology()


def test_building_starts_no_thread() -> None:
    before = threading.active_count()
    b = builder(memory_spout())
    b.set_bolt("count", Commits()).shuffle_grouping("words")
    b.build_topology()
    assert threading.active_count() == before


def test_every_declaration_error_is_a_value_error_of_ours() -> None:
    from stormline import StormlineError
    from stormline.topology import errors

    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, DeclarationError)]
    assert len(kinds) > 15
    assert all(issubclass(kind, (StormlineError, ValueError)) for kind in kinds)
    # KeyError quotes its message; ours read as written.
    assert all(str(kind("read me")) == "read me" for kind in kinds)
