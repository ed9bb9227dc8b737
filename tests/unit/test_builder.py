"""TransactionalTopologyBuilder: what may be declared, and what the error says where it may not."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any, cast

import pytest

from stormline import Config, Fields, ICommitter, ICommitterTransactionalSpout, ITransactionalSpout
from stormline.topology.builder import BoltDeclarer, TransactionalTopologyBuilder
from stormline.topology.config import DEBUG, MAX_SPOUT_PENDING, MAX_TASK_PARALLELISM, TASKS
from stormline.topology.errors import (
    DeclarationError,
    DuplicateComponent,
    DuplicateGrouping,
    InvalidComponent,
    InvalidConfig,
    InvalidGrouping,
    InvalidId,
    InvalidParallelism,
    InvalidStream,
    UnknownConfigKey,
)
from stormline.topology.grouping import GlobalStreamId, Grouping, GroupingKind
from stormline.topology.topology import ComponentKind
from tests.unit.declaring_kit import (
    Basic,
    Batch,
    Commits,
    FirstTask,
    OpaqueSpout,
    PartitionedSpout,
    Spout,
    builder,
    memory_spout,
)


class CommitterSpout(Spout, ICommitterTransactionalSpout):
    pass


class BasicCommitter(Basic, ICommitter):
    pass


class TwoSpouts(PartitionedSpout, ITransactionalSpout):
    pass


class BasicAndBatch(Basic, Batch):  # type: ignore[misc]
    pass


def refused(error: type[DeclarationError], message: str, call: Callable[[], object]) -> None:
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)


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
        f"bolt 'more' is a spout ({type(spout).__name__}); a topology has one spout, here 'words': build a second topo",
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
        f"bolt 'b' is {what}, expected an object of either IBasicBolt or IBatchBolt",
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
