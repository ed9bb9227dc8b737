"""Whether components can be sent to the executors: the error names the component and the attribute."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from typing import Any

import cloudpickle
import pytest

from stormline import ICommitter
from stormline.runtime.in_process_cluster import InProcessCluster
from stormline.topology.compiler import compile_topology
from stormline.topology.errors import NotShippable
from stormline.topology.topology import Topology
from tests.kit import LEDGERS, line, numbers
from tests.unit.declaring_kit import Batch, FirstTask, Spout, builder


class Holds(Batch):
    def __init__(self, **attributes: Any) -> None:
        super().__init__()
        self.__dict__.update(attributes)


class Slotted(Batch):
    __slots__ = ("connection", "unset")

    def __init__(self) -> None:
        super().__init__()
        self.connection = threading.Lock()


class DropsIt(Holds):
    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "connection"}


class RaisesWhenPickled(Batch):
    def __reduce__(self) -> Any:
        raise RuntimeError("not me")


def build(bolt: Any = None, **config: Any) -> None:
    b = builder()
    declarer = b.set_bolt("count", Batch() if bolt is None else bolt).shuffle_grouping("words")
    declarer.add_configurations(config)
    b.build_topology()


def refused(bolt: Any = None, **config: Any) -> str:
    with pytest.raises(NotShippable) as caught:
        build(bolt, **config)
    return str(caught.value)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (threading.Lock(), "_thread.lock"),
        ((i for i in "ab"), "builtins.generator"),
        ([threading.Lock()], "builtins.list"),
    ],
)
def test_an_attribute_that_cannot_be_pickled_is_named_with_its_type(value: Any, kind: str) -> None:
    message = refused(Holds(fine=1, connection=value))
    assert message.startswith(
        f"batch bolt 'count' (Holds) cannot be sent to the executors: attribute 'connection' is a {kind}, which cannot"
    )
    assert message.endswith("open it in prepare(), not in __init__()")


def test_an_attribute_in_a_slot_is_named_too() -> None:
    assert "attribute 'connection' is a _thread.lock" in refused(Slotted())


def test_where_no_attribute_is_at_fault_the_cause_is_shown() -> None:
    assert refused(RaisesWhenPickled()) == (
        "batch bolt 'count' (RaisesWhenPickled) cannot be sent to the executors: not me"
    )


def test_a_bolt_that_leaves_its_connection_behind_when_pickled_is_fine() -> None:
    build(DropsIt(connection=threading.Lock()))


def test_lambdas_and_local_classes_can_be_sent() -> None:
    class Local(Holds):
        pass

    build(Local(function=lambda word: word.upper()), mine=lambda: 1)


def test_a_spout_is_named_as_what_it_is() -> None:
    spout = Spout(config={})
    spout.connection = threading.Lock()  # type: ignore[attr-defined]
    with pytest.raises(
        NotShippable, match=r"^transactional spout 'words' \(Spout\) cannot be sent .* 'connection' is a"
    ):
        builder(spout).build_topology()


LOCK = threading.Lock()


class InDriver(Holds, ICommitter):
    """Uses a lock of its module, which holds what cannot be sent."""

    gathers = None

    def finish_batch(self) -> None:
        with LOCK:
            LEDGERS["t"].trail.append(self.attempt)

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        self.attempt = batch_id


cloudpickle.register_pickle_by_value(sys.modules[__name__])  # as it does with what a script defines


def line_of(bolt: Any, **own: Any) -> Topology:
    return line("t", numbers(4), 2, lambda b: b.set_bolt("x", bolt).global_grouping("spout").add_configurations(own))


def test_what_lives_in_the_driver_may_use_what_cannot_be_sent() -> None:
    topology = line_of(InDriver())
    cloudpickle.dumps(compile_topology(topology).for_executors())
    with InProcessCluster() as cluster:
        cluster.submit(topology).await_drained(20)
    assert len(LEDGERS["t"].trail) == 1


def test_what_lives_in_the_driver_must_be_such_that_it_can_be_copied() -> None:
    with pytest.raises(NotShippable) as caught:
        line_of(InDriver(connection=threading.Lock()))
    assert str(caught.value).startswith(
        "batch bolt 'x' (InDriver) cannot be copied for each batch: attribute 'connection' is a _thread.lock, which "
        "cannot be copied (cannot pickle '_thread.lock' object); open it in prepare(), not in __init__()"
    )


def test_a_spout_whose_emitters_live_in_the_driver_may_hold_anything() -> None:
    spout = Spout(config={})
    spout.emits_on_executors, spout.connection = False, threading.Lock()  # type: ignore[attr-defined]
    b = builder(spout)
    b.set_bolt("count", Batch()).shuffle_grouping("words")
    cloudpickle.dumps(compile_topology(b.build_topology()).for_executors())


def test_a_bolt_that_commits_on_the_executors_must_be_such_that_it_can_be_sent() -> None:
    placed = {"topology.commit.placement": "executors"}
    with pytest.raises(
        NotShippable, match=r"^batch bolt 'x' \(InDriver\) cannot be sent to the executors: cannot pickle"
    ):
        compile_topology(line_of(InDriver()), placed)
    with pytest.raises(
        NotShippable, match=r"^batch bolt 'x' \(InDriver\) cannot be sent to the executors: cannot pickle"
    ):
        compile_topology(line_of(InDriver(), **placed))


def test_a_custom_grouping_is_named_by_bolt_and_source() -> None:
    class Locked(FirstTask):
        def __init__(self) -> None:
            self.lock = threading.Lock()

        def choose_tasks(self, task_id: int, values: Sequence[Any]) -> Sequence[int]:
            return []

    b = builder()
    b.set_bolt("count", Batch()).custom_grouping("words", Locked())
    with pytest.raises(NotShippable) as caught:
        b.build_topology()
    assert str(caught.value).startswith(
        "the custom grouping of 'count' on words (Locked) cannot be sent to the executors: attribute 'lock' is a"
    )


def test_a_setting_that_cannot_be_pickled_is_named_by_its_key() -> None:
    message = refused(fine=1, mine=threading.Lock())
    assert message.startswith(
        "configuration of batch bolt 'count' cannot be sent to the executors: 'mine' is a _thread.lock, which cannot be"
    )
    assert message.endswith("put into the configuration what it is made from, and make it in prepare()")
