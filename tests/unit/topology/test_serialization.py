"""The wire format: a value and its type survive, or there is an error."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import enum
import functools
import io
import os
import queue
import sqlite3
import subprocess
import sys
import threading
import zoneinfo
from decimal import Decimal
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from stormline import StormlineError, TransactionAttempt
from stormline.topology.errors import SerializationError, UnregisteredClass
from stormline.topology.serialization import DEPTH_MAX, PLAIN
from tests.kits.serialized import EXAMPLES, REGISTRY, VALUES, Base, Colour, Pair, identity, round_trip

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
        (dt.datetime(2026, 1, 2, 3, 4, 5, 6, dt.UTC), "c70f0599cd07ea0102030405060093000000"),
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
    object(), SimpleNamespace(a=1), PurePosixPath("a"), range(3), len, Unregistered, ...,
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


LIST = "call .tolist(), or emit whole columns at once, as a record batch, by emit_batch"
PLAIN_REMEDIES = [
    *((value, "call .item()") for value in (np.int64(1), np.float64(1), np.bool_(True), np.str_("a"), np.bytes_(b"a"))),
    (np.longdouble(1), "call float() of it"),
    (np.datetime64(1, "ns"), "call .astype('datetime64[us]').item(), which is a datetime"),
    (np.timedelta64(1, "ns"), "call .astype('timedelta64[us]').item(), which is a timedelta"),
    *((values, LIST) for values in (np.array([1]), pd.Series([1]), pd.Index([1]), pd.array([1]))),
    (pd.Timestamp(0), "call .to_pydatetime()"),
    (pd.Timedelta(1, "s"), "call .to_pytimedelta()"),
    (pd.NaT, "use None instead"),
    (
        pd.DataFrame({"a": [1]}),
        "emit a tuple for each of .itertuples(index=False), or the whole by "
        "emit_batch(pyarrow.RecordBatch.from_pandas(frame, preserve_index=False))",
    ),
]


@pytest.mark.parametrize(("value", "remedy"), PLAIN_REMEDIES, ids=lambda value: type(value).__name__)
def test_a_value_of_numpy_or_pandas_is_an_error_that_says_how_it_becomes_plain(value: Any, remedy: str) -> None:
    name = type(value).__qualname__
    for holding in (value, [value], {"k": (value,)}, Pair(1, Base(value))):
        with pytest.raises(UnregisteredClass) as caught:
            REGISTRY.pack(holding)
        message = str(caught.value)
        assert message.startswith(f"class {type(value).__module__}.{name} is not registered (value ")
        assert message.endswith(f"); {remedy}; or config.register_serialization({name}, serializer)")


def test_what_the_remedies_give_can_be_written() -> None:
    moment = np.datetime64(1_000_000, "ns")
    for plain in (
        *(value.item() for value, remedy in PLAIN_REMEDIES if remedy == "call .item()"),
        *(values.tolist() for values, remedy in PLAIN_REMEDIES if remedy == LIST),
        float(np.longdouble(1)),
        moment.astype("datetime64[us]").item(),
        (moment - moment).astype("timedelta64[us]").item(),
        pd.Timestamp(0).to_pydatetime(),
        pd.Timedelta(1, "s").to_pytimedelta(),
        list(map(list, pd.DataFrame({"a": [1], "b": ["x"]}).itertuples(index=False))),
    ):
        PLAIN.pack(plain)


@pytest.mark.parametrize(
    ("value", "instead"),
    [
        (threading.Lock(), "leave it out"),
        (io.BytesIO(), "send its path, or what it holds"),
        ((i for i in "ab"), "send a list of what it gives"),
        (queue.Queue(), "send what it holds, as a list"),
        (threading.Thread(), "send what it has worked out"),
        (sqlite3.Connection(":memory:"), "send what it has read, or what it is opened with"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_belongs_to_this_process_is_an_error_that_says_what_travels_instead(value: Any, instead: str) -> None:
    with pytest.raises(UnregisteredClass) as caught:
        REGISTRY.pack([value])
    message = str(caught.value)
    assert message.startswith(f"class {type(value).__module__}.{type(value).__qualname__} is not registered (value ")
    assert message.endswith(f"); it belongs to this process and cannot travel: {instead}")


def test_a_class_that_is_called_a_connection_may_be_registered() -> None:
    class FlightConnection:
        pass

    with pytest.raises(UnregisteredClass, match=r"call config.register_serialization\(.*FlightConnection\)$"):
        PLAIN.pack(FlightConnection())


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
    deepest = nested(DEPTH_MAX, lambda inner: (inner,) if type(inner) is tuple else ([inner],))
    assert round_trip(deepest) == deepest


def test_a_bytearray_can_be_read_at_the_last_level() -> None:
    deepest = nested(DEPTH_MAX - 1, lambda inner: (inner if type(inner) is tuple else (bytearray(b"a"),),))
    assert round_trip(deepest) == deepest


def test_as_many_lists_in_an_extension_can_be_read_as_can_be_written() -> None:
    lists = nested(DEPTH_MAX, lambda inner: [inner])
    assert round_trip((lists,)) == (lists,)
    dicts = nested(DEPTH_MAX, lambda inner: {"a": inner})
    assert round_trip(([(dicts,)],)) == ([(dicts,)],)
    with pytest.raises(SerializationError, match="nested deeper than 64 levels"):
        REGISTRY.pack(([lists],))


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
