"""Law 9 (routing) for keys of many types: where a key goes depends on nothing but the key."""

from __future__ import annotations

import datetime as dt
import enum
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormline import (
    Config,
    MemoryTransactionalSpout,
    TransactionalTopologyBuilder,
    TransactionAttempt,
    compile_topology,
)
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.runtime.tuples.columns import Columns
from stormline.topology.grouping import Grouping, GroupingKind
from tests.unit.runtime.tuples.test_partitioning import Sink

ATTEMPT = TransactionAttempt(1, 1)
TASKS = 64


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 5


class Colour(enum.Enum):
    RED = "red"
    BLUE = 5


class Letter(str, enum.Enum):  # noqa: UP042 - as users write them
    A = "a"


class Half(float, enum.Enum):
    HALF = 0.5


class Pair(NamedTuple):
    x: Any
    y: Any


@dataclass(frozen=True)
class Money:
    amount: Any


class Celsius(float):
    """Compares as a float does."""


class Tagged:
    """Equals, and hashes as, whatever it holds: to Python one key with it; it has no repr that another process has."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def __eq__(self, other: object) -> bool:
        return bool(self.held == (other.held if isinstance(other, Tagged) else other))

    def __hash__(self) -> int:
        return hash(self.held)


class AnyCase(str):
    def __eq__(self, other: object) -> bool:
        return self.lower() == str(other).lower()

    def __hash__(self) -> int:
        return hash(str(self.lower()))


class ByText:
    def to_data(self, obj: Any) -> Any:
        return str(obj)

    def from_data(self, data: Any) -> Any:
        raise NotImplementedError


class ByHeld:
    def to_data(self, obj: Any) -> Any:
        return obj.held

    def from_data(self, data: Any) -> Any:
        return Tagged(data)


class Lowered:
    def to_data(self, obj: Any) -> Any:
        return obj.lower()

    def from_data(self, data: Any) -> Any:
        return AnyCase(data)


def conf() -> Config:
    config = Config()
    for cls in (Level, Colour, Letter, Half, Pair, Money):
        config.register_serialization(cls)
    for other in (
        Celsius,
        Fraction,
        np.int64,
        np.int8,
        np.uint64,
        np.float64,
        np.float32,
        np.float16,
        np.bool_,
        np.str_,
    ):
        config.register_serialization(other, ByText)
    config.register_serialization(np.datetime64, ByText)
    config.register_serialization(Tagged, ByHeld)
    config.register_serialization(AnyCase, Lowered)
    return config


def splitter(*fields: str) -> Any:
    """Return a fields grouping over TASKS tasks that has seen nothing yet."""
    builder = TransactionalTopologyBuilder("t", "s", MemoryTransactionalSpout({}, ["one", "two"], 1))
    builder.set_bolt("sink", Sink(), TASKS).grouping("s", Grouping(GroupingKind.FIELDS, fields or ("one",)))
    env = TaskEnvironment(compile_topology(builder.build_topology(), conf()), 1)
    return env.splitter(env.plan.edges[0], 1, 0)


def task_of(split: Any, *key: Any) -> int:
    """Return where a row of this key goes."""
    ((task, _),) = split([[ATTEMPT, *key, *[0] * (2 - len(key))]])
    return int(task)


def alone(*key: Any) -> int:
    return task_of(splitter(*("one", "two")[: len(key)]), *key)


LONG = 10**5_001
SIGNALING = Decimal("sNaN")
SCALARS: list[Any] = [
    *[None, False, True, 0, 1, 5, 2**64, LONG, -LONG, 10**6_000 + 1, 0.0, -0.0, 0.5, 5.0, 1e300, float("inf")],
    *[
        Decimal(5),
        Decimal("5.0"),
        Decimal("0.1"),
        Decimal("0.5"),
        Decimal(LONG),
        Decimal("1E+5001"),
        Decimal("-1E+5001"),
    ],
    *[Decimal("1E-6000"), Decimal("1E+999999"), SIGNALING, Decimal("NaN"), Decimal("Infinity"), Decimal("-0")],
    *[Fraction(5), Fraction(1, 2), Fraction(1, 10), Fraction(LONG), Fraction(1, 10**6_000), Fraction(1, 3)],
    *[Fraction(1, 2**521 - 1), Fraction(10**400, 3), 5 + 0j, 5j, complex(0.5)],
    *[np.int64(5), np.int8(1), np.uint64(2**63), np.float64(5), np.float64(0.5), np.float32(0.5), np.float16(0.5)],
    *[np.float64(0.1), np.float32(0.1), np.float64("inf"), np.float64("nan"), np.bool_(True), np.str_("a")],
    *["", "a", "A", "red", b"", b"a", bytearray(b"a"), AnyCase("A"), AnyCase("a"), Letter.A, Level.LOW, Level.HIGH],
    *[Half.HALF, Celsius(5), Celsius(0.5), Colour.RED, Colour.BLUE, Tagged(5), Tagged("a"), Tagged((5, "a"))],
    *[dt.date(2020, 1, 1), dt.datetime(2020, 1, 1), dt.time(1), dt.timedelta(1), np.datetime64("2020-01-01")],
    dt.datetime(2020, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin")),
    dt.datetime(2020, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")),
    dt.datetime(2020, 10, 25, 0, 30, tzinfo=dt.UTC),
    dt.datetime(2020, 10, 25, 1, 30, tzinfo=dt.UTC),
    *[ATTEMPT, Money(5), Money(np.int64(5)), Money(Tagged(5)), Pair(5, "a"), Pair(5, Tagged("a"))],
]

scalars = st.integers(0, len(SCALARS) - 1).map(lambda i: SCALARS[i])  # by number: some have no repr
# No set holds a Decimal and an integer of numpy that equals it: comparing the two is a TypeError.
hashable = scalars.filter(lambda value: not isinstance(value, (bytearray, np.integer)) and value is not SIGNALING)
values = st.recursive(
    scalars | st.integers() | st.floats() | st.text(max_size=3) | st.decimals() | st.fractions(),
    lambda inner: (
        st.tuples(inner)
        | st.tuples(inner, inner)
        | st.lists(inner, max_size=2)
        | st.frozensets(hashable, max_size=3)
        | st.dictionaries(hashable, inner, max_size=2)
    ),
    max_leaves=4,
)


@settings(max_examples=100, deadline=None)
@given(st.lists(values, min_size=1, max_size=6))
def test_where_a_key_goes_does_not_depend_on_what_was_seen_before(keys: list[Any]) -> None:
    warmed = splitter()
    for key in [*SCALARS, *reversed(SCALARS), *keys]:
        task_of(warmed, key)
    assert [task_of(warmed, key) for key in keys] == [alone(key) for key in keys]
    warmed = splitter("one", "two")
    for key in keys:
        for other in (5, "a", np.int64(5), Tagged(5)):
            task_of(warmed, key, other)
            task_of(warmed, other, key)
    assert [task_of(warmed, key, 5) for key in reversed(keys)] == [alone(key, 5) for key in reversed(keys)]


@pytest.mark.parametrize("fields", [("one",), ("one", "two")])
def test_the_keys_of_one_batch_do_not_find_each_others_tasks(fields: Sequence[str]) -> None:
    for order in (SCALARS, SCALARS[::-1]):
        rows = [[ATTEMPT, key, i % 3] for i, key in enumerate(order)]
        split = splitter(*fields)
        for _ in range(2):
            found = {
                row[0]: task for task, share in split([[i, *row[1:]] for i, row in enumerate(rows)]) for row in share
            }
            assert [found[i] for i in range(len(rows))] == [alone(*row[1 : 1 + len(fields)]) for row in rows]


def test_numbers_that_are_equal_are_one_key_whatever_their_types() -> None:
    for equal in (
        [5, 5.0, Decimal(5), Fraction(5), 5 + 0j, np.int64(5), np.float64(5), Level.HIGH, Celsius(5)],
        [True, 1, np.bool_(True), np.int8(1), Level.LOW],
        [0.5, Decimal("0.5"), Fraction(1, 2), np.float64(0.5), np.float32(0.5), np.float16(0.5), Half.HALF],
        [Decimal("0.1"), Fraction(1, 10)],
        [Decimal("1E-6000"), Fraction(1, 10**6_000)],
        [LONG, Decimal("1E+5001"), Decimal(LONG), Fraction(LONG)],
        [-LONG, Decimal("-1E+5001"), Fraction(-LONG)],
        [10**6_000 + 1, Decimal(10**6_000 + 1), Fraction(10**6_000 + 1)],
        ["a", Letter.A, np.str_("a")],
        [(5, "a"), Pair(5, "a"), Pair(np.int64(5), np.str_("a"))],
    ):
        assert all(value == equal[0] for value in equal)
        assert len({alone(value) for value in equal}) == 1, equal[0]
        assert len({alone("x", value) for value in equal}) == 1, equal[0]


def test_an_object_of_a_users_class_is_another_key_than_the_built_in_value_that_it_equals() -> None:
    numbers = range(40)
    warmed = splitter()
    of_ints = [task_of(warmed, n) for n in numbers]
    of_objects = [task_of(warmed, Tagged(n)) for n in numbers]
    assert of_objects == [alone(Tagged(n)) for n in numbers]
    assert of_objects != of_ints


def test_columns_go_where_rows_of_whatever_equal_numbers_go() -> None:
    numbers = list(range(40))
    for column, kind in ((pa.array(numbers), np.int64), (pa.array(numbers, pa.float64()), np.float64)):
        warmed = splitter()
        rows = [task_of(warmed, kind(n)) for n in numbers]
        batch = pa.RecordBatch.from_arrays([column, column], names=["one", "two"])
        found = {n: task for task, share in warmed(Columns(ATTEMPT, batch)) for n in share.values(1)}
        assert [found[n] for n in numbers] == rows


def test_another_process_sends_each_key_to_the_same_task_though_its_strings_hash_otherwise() -> None:
    sets = [
        frozenset(map(Tagged, "abcdefgh")),
        frozenset([Tagged("a"), Money(5), "b"]),
        {Tagged("y"): 1, Tagged("x"): 2},
    ]
    here = [alone(key) for key in [*SCALARS, *sets]]
    code = (
        "import tests.unit.runtime.tuples.test_keys_of_many_types as kit\n"
        "sets = [frozenset(map(kit.Tagged, 'abcdefgh')), frozenset([kit.Tagged('a'), kit.Money(5), 'b']),"
        " {kit.Tagged('y'): 1, kit.Tagged('x'): 2}]\n"
        "warmed = kit.splitter()\n"
        "print([kit.task_of(warmed, key) for key in reversed([*kit.SCALARS, *sets])][::-1])"
    )
    for seed in ("0", "1", "17"):
        shown = subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert shown.stdout.strip() == str(here)
