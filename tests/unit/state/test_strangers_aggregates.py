"""Aggregates of strangers' values and functions: what is stored is right, or a sentence says what to change."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from decimal import Decimal
from enum import StrEnum
from typing import Any

import pytest

from stormline import MemoryTransactionalSpout, TransactionalTopologyBuilder
from stormline.errors import TopologyFailed, UnknownField
from stormline.state import (
    Aggregator,
    Count,
    Distinct,
    Max,
    Mean,
    MemoryStore,
    Min,
    Reduce,
    SnapshottableMap,
    Sum,
    Top,
    TransactionalMap,
    persistent_aggregate,
)
from stormline.testing import InProcessCluster

STORE = MemoryStore("strange aggregates")


@pytest.fixture(autouse=True)
def _clear() -> Iterator[None]:
    STORE.clear()
    yield
    STORE.clear()


def stored(rows: list[Any], key: type, aggregates: dict[str, Aggregator], take: int = 3) -> dict[Any, Any]:
    """Return what a map holds after a topology has aggregated `rows` of a key and a value."""
    columns = {column: kind for name, one in aggregates.items() for column, kind in one.columns(name).items()}
    into = TransactionalMap(STORE, "results", key={"k": key}, value=columns)
    builder = TransactionalTopologyBuilder("strange", "spout", MemoryTransactionalSpout({0: rows}, ["k", "v"], take))
    persistent_aggregate(builder, "store", "spout", into, aggregates, parallelism=2)
    with InProcessCluster() as cluster, cluster.submit(builder.build_topology()) as handle:
        handle.await_drained(60)
    return into.items()


class Colour(StrEnum):
    RED = "red"


@pytest.mark.parametrize("rows", [[1, True, 1.0, Decimal(1), 1], [Decimal("1.0"), 1, True], [True, 1.0, 1, 1, 1, 1]])
def test_numbers_that_are_one_key_of_a_grouping_are_one_row_whichever_comes_first(rows: list[Any]) -> None:
    found = stored([(key, 1) for key in rows], int, {"n": Count()})
    assert found == {1: len(rows)}
    assert [type(key) for key in found] == [int]
    STORE.clear()
    assert stored([(key, 1) for key in rows], bool, {"n": Count()}) == {True: len(rows)}


@pytest.mark.parametrize(("key", "kind"), [("red", "str"), (0.5, "float"), (2**70, "int"), (None, "NoneType")])
def test_a_key_that_its_column_does_not_take_is_said(key: Any, kind: str) -> None:
    with pytest.raises(TopologyFailed, match=r"the key of table 'results': column 'k' does not take .*, which is "):
        stored([(key, 1)], int, {"n": Count()})


@pytest.mark.parametrize(
    ("values", "aggregate", "expected"),
    [
        ([1, 2.5, 3], Sum("v", float), 6.5),
        ([1, 2], Sum("v", float), 3.0),
        ([1, Decimal("0.1")], Sum("v", Decimal), Decimal("1.1")),
        ([2], Max("v", Decimal), Decimal(2)),
        ([True], Sum("v"), 1),
        ([True, True], Sum("v"), 2),
        ([3, 1.5], Min("v", float), 1.5),
        ([[1], [2], [3]], Reduce("v", lambda one, other: sorted([*one, *other])), [1, 2, 3]),
        ([0.1, 0.2, 0.3], Reduce("v", operator.add, float), 0.6),
        ([(0.1, 1), (0.2, 1)], Reduce("v", lambda one, other: (one[0] + other[0], one[1] + other[1])), (0.3, 2)),
    ],
)
def test_numbers_are_stored_as_their_column_has_them(values: list[Any], aggregate: Aggregator, expected: Any) -> None:
    found = stored([("a", value) for value in values], str, {"x": aggregate})
    assert found == {"a": pytest.approx(expected)}
    assert type(found["a"]) is type(expected)


def extended(one: list[int], other: list[int]) -> list[int]:
    one.extend(other)
    one.sort()
    return one


def test_functions_that_change_what_they_are_given_change_no_tuple_and_no_other_result() -> None:
    rows = [("a", [1]), ("a", [2]), ("a", [3]), ("b", [4]), ("a", [5])]
    found = stored(rows, str, {"x": Reduce("v", extended), "y": Reduce("v", extended), "n": Count()})
    assert found == {"a": ([1, 2, 3, 5], [1, 2, 3, 5], 4), "b": ([4], [4], 1)}
    assert rows[0] == ("a", [1])


def forgets(one: list[int], other: list[int]) -> None:
    one.extend(other)


def mean(one: float, other: float) -> float:
    return (one + other) / 2


def latest(one: Any, other: Any) -> Any:
    return other


class ReturnsNone(Count):
    def combine(self, one: Any, other: Any) -> Any:
        return None


class SkipsSome(Sum):
    def first(self, value: Any) -> Any:
        return value if value > 0 else None


def test_an_aggregator_may_pass_over_values() -> None:
    assert stored([("a", 3), ("a", -1), ("a", 2), ("b", -1)], str, {"x": SkipsSome("v")}) == {"a": 5}


NAN = float("nan")


@pytest.mark.parametrize(
    ("values", "aggregate", "why"),
    [
        (
            [[1], [2]],
            Reduce("v", forgets),
            r"function forgets of Reduce of field 'v' returns None for \[1, 2\] and \[2\]",
        ),
        (
            [1, 2],
            ReturnsNone("v"),
            r"ReturnsNone.combine of field 'v' returns None for 1 and 1, expected the one value",
        ),
        ([1.0, NAN], Max("v", float), r"Max of field 'v' is given nan, which compares with nothing, .*; leave it out"),
        ([NAN], Min("v", float), r"Min of field 'v' is given nan, which compares with nothing"),
        ([NAN, 1.0], Top(2, "v"), r"Top of field 'v' is given nan, which compares with nothing"),
        ([NAN, NAN], Distinct("v"), r"Distinct of field 'v' is given nan, which compares with nothing"),
        ([NAN], Sum("v", float), r"column 'x' does not take nan, which is not finite"),
        ([NAN, 1.0], Mean("v"), r"column 'x' does not take nan, which is not finite"),
        ([1, "a"], Sum("v"), r"Sum of field 'v' cannot combine 1 and 'a': unsupported .*; emit values of one type"),
        (
            [1, "a"],
            Max("v"),
            r"Max of field 'v' cannot combine 1 and 'a': .* not supported .*; emit values of one type",
        ),
        ([1.5, 1], Sum("v"), r"column 'x' does not take 2.5, which is a float, expected exactly int; convert it"),
        ([10**400], Sum("v", float), r"column 'x' does not take 1000.*, which is a int, expected exactly float"),
        ([2**62, 2**62], Sum("v"), r"column 'x' does not take 9223372036854775808, which is not within 64 bits"),
    ],
)
def test_what_cannot_be_aggregated_is_said(values: list[Any], aggregate: Aggregator, why: str) -> None:
    with pytest.raises(TopologyFailed, match=why):
        stored([("a", value) for value in values], str, {"x": aggregate})


@pytest.mark.parametrize(
    ("key", "aggregates", "why"),
    [
        (
            {"wrod": str},
            {"n": Count()},
            r"'store-partial' reads field 'wrod'; .* \['tx', 'word', 'n'\]; did you mean 'w",
        ),
        ({"word": str}, {"n": Sum("m")}, r"'store-partial' reads field 'm'; stream 'default' of 'spout' declares"),
        (None, {"n": Sum("m")}, r"'store-partial' reads field 'm'; stream 'default' of 'spout' declares"),
    ],
)
@pytest.mark.parametrize("batches", [False, True])
def test_a_field_that_no_source_has_is_said_when_the_topology_is_built(
    key: Any, aggregates: Any, why: str, batches: bool
) -> None:
    spout = MemoryTransactionalSpout({0: [("cat", 1)]}, ["word", "n"], 3)
    builder = TransactionalTopologyBuilder("strange", "spout", spout)
    into = TransactionalMap(STORE, "results", key=key or {"name": str}, value={"n": int})
    persistent_aggregate(
        builder, "store", "spout", into if key else SnapshottableMap(into), aggregates, batches=batches
    )
    with pytest.raises(UnknownField, match=why):
        builder.build_topology()
