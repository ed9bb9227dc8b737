"""The wire format: a value and its type survive, or there is an error."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import enum
import functools
import io
import os
import subprocess
import sys
import threading
import zoneinfo
from decimal import Decimal
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import Any, NamedTuple

import msgpack
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from stormline import Config, StormlineError, TransactionAttempt
from stormline.topology.errors import (
    CorruptData,
    InvalidRegistration,
    SerializationError,
    UnregisteredClass,
)
from stormline.topology.registration import Registration
from stormline.topology.serialization import DEPTH_MAX, PLAIN, Registry
from tests.unit.serialized_kit import EXAMPLES, REGISTERED, REGISTRY, VALUES, Base, Colour, Pair, identity


def round_trip(value: Any, registry: Registry = REGISTRY) -> Any:
    return registry.unpack(registry.pack(value))


# ---------------------------------------------------------------------------------------- round trips


@pytest.mark.parametrize("value", EXAMPLES, ids=lambda value: type(value).__name__)
def test_a_value_and_its_type_survive(value: Any) -> None:
    assert identity(round_trip(value)) == identity(value)
    assert identity(round_trip([value])) == identity([value])
    assert identity(round_trip((value,))) == identity((value,))
    assert identity(round_trip({"key": value})) == identity({"key": value})


@settings(max_examples=400, deadline=None)
@given(VALUES)
def test_any_value_and_its_type_survive(value: Any) -> None:
    assert identity(round_trip(value)) == identity(value)


@settings(max_examples=100, deadline=None)
@given(VALUES)
def test_the_same_value_gives_the_same_bytes(value: Any) -> None:
    packed = REGISTRY.pack(value)
    assert REGISTRY.pack(REGISTRY.unpack(packed)) == packed == REGISTRY.pack(value)


def test_sets_give_the_same_bytes_whatever_was_added_first() -> None:
    assert PLAIN.pack({8, 0}) == PLAIN.pack({0, 8})
    assert [*{8, 0}] != [*{0, 8}]  # not so in memory


@pytest.mark.parametrize("value", ["set('transaction')", "{'k': [frozenset(['a', ('b', 2), None, 2.5, b'c'])]}"])
def test_sets_give_the_same_bytes_in_every_process(value: str) -> None:
    code = f"from stormline.topology.serialization import PLAIN; print(PLAIN.pack({value}).hex())"
    written = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout
        for seed in range(4)
    }
    assert len(written) == 1


def test_the_order_of_a_dict_survives() -> None:
    assert list(round_trip({"b": 1, "a": 2, 0: 3})) == ["b", "a", 0]


def test_an_alias_of_an_enum_is_its_member() -> None:
    assert round_trip(Colour.CRIMSON) is Colour.RED


def test_packing_leaves_the_value_as_it_was() -> None:
    held = [bytearray(b"a"), {"k": bytearray(b"b")}]
    PLAIN.pack(held)
    assert identity(held) == identity([bytearray(b"a"), {"k": bytearray(b"b")}])


# Bytes stored by one version are read by the next: these may only be added to.
@pytest.mark.parametrize(
    ("value", "written"),
    [
        ([1, "a", None, True, 1.5, b"x"], "9601a161c0c3cb3ff8000000000000c40178"),
        ({"a": 1}, "81a16101"),
        ((1, 2), "c70301920102"),
        ({7}, "d5029107"),
        (frozenset({7}), "d5039107"),
        (2**64, "c70904010000000000000000"),
        (dt.datetime(2026, 1, 2, 3, 4, 5, 6, dt.timezone.utc), "c70f0599cd07ea0102030405060093000000"),
        (dt.datetime(2026, 1, 2, tzinfo=dt.timezone(dt.timedelta(0), "Z")), "c7110599cd07ea0102000000000094000000a15a"),
        (dt.date(2026, 1, 2), "c70506ce000b4922"),
        (dt.timedelta(1, 2, 3), "d60793010203"),
        (Decimal("1.10"), "c70508a4312e3130"),
        (bytearray(b"x"), "c7030ac40178"),
        (TransactionAttempt(3, 1), "c7030d920301"),
    ],
)  # fmt: skip
def test_the_format_stays_readable(value: Any, written: str) -> None:
    assert identity(PLAIN.unpack(bytes.fromhex(written))) == identity(value)
    assert PLAIN.pack(value).hex() == written


# ---------------------------------------------------------------------------------------- what is not registered


class Text(str):
    pass


class Whole(int):
    pass


class Real(float):
    pass


class Raw(bytes):
    pass


class Many(list):  # type: ignore[type-arg]
    pass


class Mapped(dict):  # type: ignore[type-arg]
    pass


class Money(Decimal):
    pass


class Instant(dt.datetime):
    pass


class Zone(zoneinfo.ZoneInfo):
    pass


class OddZone(dt.tzinfo):
    def utcoffset(self, when: dt.datetime | None) -> dt.timedelta:
        return dt.timedelta(0)

    def dst(self, when: dt.datetime | None) -> None: ...

    def tzname(self, when: dt.datetime | None) -> None: ...


@dataclasses.dataclass
class Unregistered:
    x: int = 1


class Untold(enum.Enum):
    A = 1


class Grade(enum.IntEnum):
    A = 1


class Point(NamedTuple):
    x: int
    y: int


STRANGERS = [
    Text("a"), Whole(1), Real(1.5), Raw(b"a"), Many([1]), Mapped({1: 2}), Money("1"), Instant(2026, 1, 1),
    collections.OrderedDict(a=1), collections.defaultdict(list), collections.Counter("a"), collections.deque([1]),
    Point(1, 2), Unregistered(), Untold.A, Grade.A,
    np.int64(1), np.float64(1.5), np.bool_(True), np.str_("a"), np.bytes_(b"a"), np.array([1]),
    pd.Timestamp(0), object(), SimpleNamespace(a=1), PurePosixPath("a"), range(3), io.BytesIO(), len,
    Unregistered, ..., threading.Lock(),
]  # fmt: skip


@pytest.mark.parametrize("value", STRANGERS, ids=lambda value: type(value).__name__)
def test_what_is_not_registered_is_an_error_and_not_something_else(value: Any) -> None:
    name = type(value).__qualname__
    for holding in (value, [value], (value,), {"k": value}, [{"k": [(value,)]}], Pair(1, Base(value))):
        with pytest.raises(UnregisteredClass) as caught:
            REGISTRY.pack(holding)
        message = str(caught.value)
        assert message.startswith(f"class {type(value).__module__}.{name} is not registered (value ")
        assert message.endswith(f"; call config.register_serialization({name})")
        assert isinstance(caught.value, (StormlineError, TypeError))


@pytest.mark.parametrize("value", [Text("a"), Whole(1), np.int64(1)])
def test_a_dict_key_of_a_class_not_registered_is_an_error_too(value: Any) -> None:
    with pytest.raises(UnregisteredClass, match=type(value).__name__ + " is not registered"):
        PLAIN.pack({value: 1})


def test_a_subclass_of_a_registered_class_is_not_registered() -> None:
    class Sub(Base):
        pass

    with pytest.raises(UnregisteredClass, match="Sub is not registered"):
        REGISTRY.pack(Sub(1))


def test_a_value_whose_repr_fails_is_an_error_that_says_so() -> None:
    class Shy:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    with pytest.raises(
        UnregisteredClass, match=r"Shy is not registered \(value whose repr raises RuntimeError\); call"
    ):
        PLAIN.pack(Shy())


def test_a_long_value_is_shown_in_part() -> None:
    with pytest.raises(UnregisteredClass) as caught:
        PLAIN.pack(Text("x" * 10_000))
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "value", [memoryview(b"a"), [memoryview(b"a")], (1, [memoryview(b"a")]), {memoryview(b"a"): 1}]
)
def test_a_memoryview_would_become_bytes_so_it_is_an_error(value: Any) -> None:
    with pytest.raises(UnregisteredClass, match=r"^a memoryview cannot be written; make it bytes$"):
        PLAIN.pack(value)


@pytest.mark.parametrize("zone", [OddZone(), Zone("Europe/Berlin")])
def test_a_time_zone_that_cannot_be_found_again_is_an_error(zone: dt.tzinfo) -> None:
    for value in (dt.datetime(2026, 1, 1, tzinfo=zone), dt.time(1, tzinfo=zone)):
        with pytest.raises(UnregisteredClass) as caught:
            PLAIN.pack(value)
        assert (
            f"({type(zone).__name__}) cannot be written; use datetime.timezone or zoneinfo.ZoneInfo with a key"
            in str(caught.value)
        )


# ---------------------------------------------------------------------------------------- depth


def nested(levels: int, wrap: Any) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = wrap(value)
    return value


def test_what_can_be_written_can_be_read_up_to_the_depth_allowed() -> None:
    deepest = nested(DEPTH_MAX, lambda inner: (inner,))
    assert round_trip(deepest) == deepest
    copied = round_trip(nested(1000, lambda inner: [inner]))
    for _ in range(1000):
        (copied,) = copied
    assert copied == 1


def holding_itself() -> Any:
    value: list[Any] = []
    value += [value, value]
    return value


def holding_itself_in_a_tuple() -> Any:
    value: list[Any] = []
    value.append((value, value))
    return value


def holding_itself_and_a_buffer() -> Any:
    value: list[Any] = [bytearray(b"a")]
    value.append((value,))
    return value


@pytest.mark.parametrize(
    "make",
    [
        lambda: nested(DEPTH_MAX + 1, lambda inner: (inner,)),
        lambda: nested(5000, lambda inner: (inner,)),
        lambda: nested(5000, lambda inner: [inner]),
        lambda: nested(5000, lambda inner: {"k": inner}),
        lambda: nested(5000, lambda inner: frozenset([inner])),
        lambda: nested(5000, Base),
        lambda: nested(64, lambda inner: (nested(400, lambda i: [i]), [inner])),
        lambda: nested(300, lambda inner: (functools.reduce(lambda i, _: [i], range(400), inner),)),
        holding_itself,
        holding_itself_in_a_tuple,
        holding_itself_and_a_buffer,
    ],
)
def test_what_is_nested_too_deeply_is_an_error_and_no_crash(make: Any) -> None:
    with pytest.raises(SerializationError, match=r"nested deeper than 64 levels, or holds itself|recursion"):
        REGISTRY.pack(make())


# ---------------------------------------------------------------------------------------- registering


class Celsius:
    def __init__(self, degrees: float) -> None:
        self.degrees = degrees


class CelsiusSerializer:
    def to_data(self, obj: Celsius) -> Any:
        return obj.degrees

    def from_data(self, data: Any) -> Celsius:
        return Celsius(data)


class HalfSerializer:
    def to_data(self, obj: Any) -> Any: ...


class NeedsArgument(CelsiusSerializer):
    def __init__(self, scale: float) -> None: ...


@pytest.mark.parametrize("serializer", [CelsiusSerializer(), CelsiusSerializer])
def test_any_class_can_be_registered_with_a_serializer_or_its_class(serializer: Any) -> None:
    registry = Registry([Registration.of(Celsius, serializer)])
    assert round_trip([Celsius(1.5)], registry)[0].degrees == 1.5


def test_a_registered_subclass_of_a_builtin_keeps_its_type() -> None:
    class TextSerializer:
        def to_data(self, obj: Any) -> Any:
            return str.__str__(obj)

        def from_data(self, data: Any) -> Any:
            return Text(data)

    copied = round_trip({"k": Text("a")}, Registry([Registration.of(Text, TextSerializer())]))["k"]
    assert type(copied) is Text
    assert copied == "a"


def test_the_order_of_registrations_does_not_matter() -> None:
    turned = Registry(Registration.of(cls) for cls in reversed(REGISTERED))
    for value in (Base(1), Pair(1, Colour.RED)):
        assert turned.pack(value) == REGISTRY.pack(value)


def test_the_same_registration_twice_is_one() -> None:
    registry = Registry([Registration.of(Base), Registration.of(Base)])
    assert round_trip(Base(1), registry) == Base(1)


def test_a_registration_is_by_module_and_qualified_name() -> None:
    assert Registration.of(Base).name == "tests.unit.serialized_kit.Base"


def made_again() -> type:
    @dataclasses.dataclass
    class Same:
        x: int

    return Same


def test_two_classes_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidRegistration) as caught:
        Registry([Registration.of(made_again()), Registration.of(made_again())])
    assert str(caught.value) == (
        f"two different classes are registered as '{__name__}.made_again.<locals>.Same'; rename one, or define it once"
    )


def test_two_serializers_of_one_class_are_refused() -> None:
    other = type("OtherSerializer", (CelsiusSerializer,), {})
    with pytest.raises(InvalidRegistration) as caught:
        Registry([Registration.of(Celsius, CelsiusSerializer), Registration.of(Celsius, other)])
    assert str(caught.value) == (
        f"class '{__name__}.Celsius' is registered with the serializers CelsiusSerializer and OtherSerializer; keep one"
    )


@dataclasses.dataclass
class TextAndMore(str):
    x: int = 1


@dataclasses.dataclass
class Problem(Exception):
    x: int = 1


@pytest.mark.parametrize(
    ("cls", "serializer", "message"),
    [
        (
            Celsius,
            None,
            "class Celsius is no dataclass, NamedTuple or Enum; pass a serializer with to_data(obj) and fro",
        ),
        (
            Celsius,
            HalfSerializer(),
            "the serializer of Celsius is a HalfSerializer without to_data(obj) and from_data(",
        ),
        (Celsius, 7, "the serializer of Celsius is a int without to_data(obj) and from_data(data)"),
        (Celsius, NeedsArgument, "the serializer of Celsius cannot be made: "),
        (Celsius(1), None, "register_serialization got <"),
        ("Celsius", None, "register_serialization got 'Celsius', expected a class"),
        (list[int], None, "register_serialization got list[int], expected a class"),
        (int, None, "class int is built in and needs no registration; remove it"),
        (dict, CelsiusSerializer(), "class dict is built in and needs no registration; remove it"),
        (Decimal, None, "class Decimal is built in and needs no registration; remove it"),
        (TransactionAttempt, None, "class TransactionAttempt is built in and needs no registration; remove it"),
        (TextAndMore, None, "dataclass TextAndMore is a str too, which holds more than its fields; pass a serializer"),
        (
            Problem,
            None,
            "dataclass Problem is a BaseException too, which holds more than its fields; pass a serializer",
        ),
    ],
)
def test_a_registration_that_cannot_work_is_refused(cls: Any, serializer: Any, message: str) -> None:
    with pytest.raises(InvalidRegistration) as caught:
        Registration.of(cls, serializer)
    assert str(caught.value).startswith(message)
    with pytest.raises(InvalidRegistration):
        Config().register_serialization(cls, serializer)


def test_an_error_of_the_users_serializer_while_writing_comes_through() -> None:
    class Breaks(CelsiusSerializer):
        def to_data(self, obj: Any) -> Any:
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        Registry([Registration.of(Celsius, Breaks())]).pack(Celsius(1))


def test_an_error_of_the_users_serializer_while_reading_names_the_class() -> None:
    class Breaks(CelsiusSerializer):
        def from_data(self, data: Any) -> Any:
            raise ZeroDivisionError("mine")

    registry = Registry([Registration.of(Celsius, Breaks())])
    with pytest.raises(CorruptData) as caught:
        registry.unpack(registry.pack(Celsius(1.5)))
    assert str(caught.value) == f"the serializer of '{__name__}.Celsius' cannot read 1.5: ZeroDivisionError: mine"
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


# ---------------------------------------------------------------------------------------- dataclasses and named tuples


@dataclasses.dataclass
class Order:
    items: list[int]
    started: list[str] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        self.started.append("ran")

    @functools.cached_property
    def total(self) -> int:
        return sum(self.items)


def test_init_does_not_run_again() -> None:
    copied = round_trip(Order([1, 2]), Registry([Registration.of(Order)]))
    assert copied == Order([1, 2])
    assert copied.started == ["ran"]


def test_what_a_cached_property_keeps_is_computed_again() -> None:
    order = Order([1, 2])
    assert order.total == 3
    copied = round_trip(order, Registry([Registration.of(Order)]))
    assert "total" not in vars(copied)
    assert copied.total == 3


def test_an_attribute_that_is_no_field_would_be_lost_so_it_is_an_error() -> None:
    order = Order([1])
    order.note = "x"  # type: ignore[attr-defined]
    with pytest.raises(UnregisteredClass) as caught:
        Registry([Registration.of(Order)]).pack(order)
    assert str(caught.value) == (
        "attribute 'note' of a Order is no field of the dataclass and would be lost; declare it as a field, with "
        "field(init=False), or register Order with a serializer"
    )


class Typed(NamedTuple):
    a: int
    b: int


class Reordered(NamedTuple):
    b: int
    a: int
    c: int = 5


def test_the_fields_of_a_named_tuple_are_found_by_their_names() -> None:
    registry = Registry([Registration.of(Reordered)])
    assert registry.unpack(as_stored(Reordered, {"a": 1, "b": 2})) == Reordered(2, 1)
    assert registry.unpack(as_stored(Reordered, {"a": 1, "b": 2, "c": 3})) == Reordered(2, 1, 3)


@dataclasses.dataclass
class Older:
    x: int


def as_stored(cls: type, data: Any) -> bytes:
    """Return bytes that say they are a `cls` made of `data`."""
    return PLAIN.pack(msgpack.ExtType(64, PLAIN.pack([f"{cls.__module__}.{cls.__qualname__}", data])))


@pytest.mark.parametrize(
    ("cls", "data", "message"),
    [
        (Older, {"x": 1, "y": 2}, "a Older needs the fields ['x'], got {'x': 1, 'y': 2}"),
        (Older, {}, "a Older needs the fields ['x'], got {}"),
        (Older, [1], "a Older needs the fields ['x'], got [1]"),
        (Older, {1: 2}, "a Older needs the fields ['x'], got {1: 2}"),
        (Typed, [1, 2], "a Typed needs the fields ['a', 'b'], got [1, 2]"),
        (Typed, {"a": 1}, "a Typed needs the fields ['a', 'b'], got {'a': 1}"),
        (Typed, {"a": 1, "b": 2, "c": 3}, "a Typed needs the fields ['a', 'b'], got {'a': 1, 'b': 2, 'c': 3}"),
        (Colour, "BLUE", "the serializer of 'tests.unit.serialized_kit.Colour' cannot read 'BLUE': KeyError: 'BLUE'"),
    ],
)
def test_an_object_stored_by_another_version_of_its_class_is_corrupt(cls: type, data: Any, message: str) -> None:
    registry = Registry([Registration.of(Older), Registration.of(Typed), Registration.of(Colour)])
    with pytest.raises(CorruptData) as caught:
        registry.unpack(as_stored(cls, data))
    assert str(caught.value).startswith(message)


def test_an_object_of_a_class_that_is_not_registered_here_is_corrupt() -> None:
    with pytest.raises(
        CorruptData, match=r"^an object of class 'tests.unit.serialized_kit.Base', which is not registered in"
    ):
        PLAIN.unpack(REGISTRY.pack(Base(1)))
