"""Whether components can be sent to the executors: the error names the component and the attribute."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from stormline.topology.errors import NotShippable
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
