"""`gathers` is checked when the topology is built: a name that nothing sets would be lost without a word."""

from __future__ import annotations

import re
from typing import Any

import pytest

from stormline import BaseBasicBolt, BaseTransactionalBolt, ICommitter
from stormline.errors import InvalidGathers
from stormline.topology.gathering import check_gathers, gathered_by


class Counts(BaseTransactionalBolt, ICommitter):
    annotated: int

    def __init__(self, **attributes: Any) -> None:
        self.__dict__["made"] = 0
        vars(self).update(attributes)

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        self.counts: dict[str, int] = {}
        self.a, self.b = 1, 2

        def inner() -> None:
            self.inner = 1

    def execute(self, tup: Any) -> None:
        self.last = tup

    def finish_batch(self) -> None: ...
    def declare_output_fields(self, declarer: Any) -> None: ...


class Plain(BaseTransactionalBolt, ICommitter):
    annotated: int
    of_class = 0

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        self.counts: dict[str, int] = {}
        self.a, self.b = 1, 2

        def inner() -> None:
            self.inner = 1

    def execute(self, tup: Any) -> None:
        self.last = tup

    def finish_batch(self) -> None: ...
    def declare_output_fields(self, declarer: Any) -> None: ...


class Slotted(Plain):
    __slots__ = ("slot",)


class Basic(BaseBasicBolt):
    gathers = ()

    def execute(self, tup: Any, collector: Any) -> None: ...


def given(gathers: Any, bolt: Any = None) -> Any:
    bolt = Plain() if bolt is None else bolt
    bolt.gathers = gathers
    return bolt


@pytest.mark.parametrize("name", ["counts", "a", "b", "last", "inner", "annotated", "of_class"])
def test_names_that_methods_set_are_taken(name: str) -> None:
    check_gathers("count", given((name,)))
    assert gathered_by(given([name])) == (name,)


def test_nothing_may_be_gathered_and_nothing_may_be_said() -> None:
    check_gathers("count", given(()))
    check_gathers("count", Plain())
    assert gathered_by(Plain()) is None
    check_gathers("count", given(("slot",), Slotted()))


def test_a_class_that_sets_attributes_by_their_names_is_believed() -> None:
    check_gathers("count", given(("whatever",), Counts()))


@pytest.mark.parametrize(
    ("gathers", "message"),
    [
        (
            "counts",
            "bolt 'count' (Plain) has gathers = 'counts', expected a tuple of attributes' names; write gathers = ",
        ),
        (7, "bolt 'count' (Plain) has gathers = 7, expected a tuple of attributes' names"),
        ((1,), "bolt 'count' (Plain) has gathers = (1,), expected a tuple of attributes' names"),
        (("a", "a"), "bolt 'count' (Plain) names 'a' twice in gathers = ('a', 'a')"),
        (
            ("count",),
            "bolt 'count' (Plain) gathers 'count', an attribute that no method of Plain sets; did you mean 'co",
        ),
    ],
)
def test_what_names_no_attribute_is_refused(gathers: Any, message: str) -> None:
    with pytest.raises(InvalidGathers, match=re.escape(message)):
        check_gathers("count", given(gathers))


class WorkedOut(Plain):
    @property
    def total(self) -> int:
        return self.a + self.b

    @property
    def settable(self) -> int:
        return self.a

    @settable.setter
    def settable(self, value: int) -> None:
        self.a = value


def test_a_property_is_gathered_where_it_can_be_set() -> None:
    check_gathers("count", given(("settable",), WorkedOut()))
    with pytest.raises(
        InvalidGathers, match=r"\(WorkedOut\) gathers 'total', a property of WorkedOut that cannot be set"
    ):
        check_gathers("count", given(("total",), WorkedOut()))


def test_what_functions_beside_the_class_set_is_to_be_annotated() -> None:
    with pytest.raises(InvalidGathers, match="annotate in the class what functions beside it set, as beside: Any"):
        check_gathers("count", given(("beside",)))


def test_a_basic_bolt_gathers_nothing() -> None:
    with pytest.raises(
        InvalidGathers, match=r"bolt 'b' \(Basic\) has gathers = \(\), and is a BasicBolt, which gathers"
    ):
        check_gathers("b", Basic())
