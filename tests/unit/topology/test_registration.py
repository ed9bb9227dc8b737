"""Registration: which classes may travel, and how their objects are written and read."""

from __future__ import annotations

import dataclasses
import functools
from decimal import Decimal
from typing import Any, NamedTuple

import msgpack
import pytest

from stormline import Config, TransactionAttempt
from stormline.topology.errors import CorruptData, InvalidRegistration, UnregisteredClass
from stormline.topology.registration import Registration
from stormline.topology.serialization import PLAIN, Registry
from tests.kits.serialized import REGISTERED, REGISTRY, Base, Colour, Pair, round_trip

# ---------------------------------------------------------------------------------------- registering


class Text(str):
    pass


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
    assert Registration.of(Base).name == "tests.kits.serialized.Base"


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
        (Colour, "BLUE", "the serializer of 'tests.kits.serialized.Colour' cannot read 'BLUE': KeyError: 'BLUE'"),
    ],
)
def test_an_object_stored_by_another_version_of_its_class_is_corrupt(cls: type, data: Any, message: str) -> None:
    registry = Registry([Registration.of(Older), Registration.of(Typed), Registration.of(Colour)])
    with pytest.raises(CorruptData) as caught:
        registry.unpack(as_stored(cls, data))
    assert str(caught.value).startswith(message)


def test_an_object_of_a_class_that_is_not_registered_here_is_corrupt() -> None:
    with pytest.raises(
        CorruptData, match=r"^an object of class 'tests.kits.serialized.Base', which is not registered in"
    ):
        PLAIN.unpack(REGISTRY.pack(Base(1)))
