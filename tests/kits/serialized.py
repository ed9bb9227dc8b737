"""Values of every type that can be written, and a comparison that tells 1 from True and 0.0 from -0.0."""

from __future__ import annotations

import datetime as dt
import enum
import struct
import uuid
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

from stormline import TransactionAttempt
from stormline.topology.registration import Registration
from stormline.topology.serialization import Registry


class Colour(enum.Enum):
    RED = 1
    GREEN = "g"
    CRIMSON = 1  # noqa: PIE796, an alias


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Right(enum.Flag):
    READ = 1
    WRITE = 2
    RUN = 4


class Pair(NamedTuple):
    left: Any
    right: Any = None


@dataclass
class Base:
    x: Any


@dataclass
class Derived(Base):
    y: Any = None
    later: Any = field(init=False)


@dataclass(frozen=True)
class Frozen:
    x: Any
    hidden: Any = field(default=0, repr=False, compare=False)


@dataclass(slots=True)
class Slots:
    x: Any
    computed: Any = field(init=False, default=7)


@dataclass(frozen=True, slots=True)
class FrozenSlots:
    x: Any
    y: Any = None


REGISTERED: tuple[type, ...] = (Colour, Level, Right, Pair, Base, Derived, Frozen, Slots, FrozenSlots)
REGISTRY = Registry(Registration.of(cls) for cls in REGISTERED)


def identity(value: Any) -> Any:
    """Return what tells `value` from every other: its type and what it holds, all the way down."""
    kind = type(value)
    if kind is float:
        held: Any = "nan" if value != value else struct.pack(">d", value)
    elif kind is complex:
        held = (identity(value.real), identity(value.imag))
    elif kind is Decimal:
        held = value.as_tuple()
    elif kind in (list, tuple, Pair):
        held = [identity(item) for item in value]
    elif kind in (set, frozenset):
        held = sorted((identity(item) for item in value), key=repr)
    elif kind is dict:
        held = [(identity(key), identity(item)) for key, item in value.items()]
    elif kind in (dt.datetime, dt.time):
        held = (value.replace(tzinfo=None, fold=0), value.fold, _zone(value.tzinfo))
    elif kind in REGISTERED and not issubclass(kind, enum.Enum):
        names = value.__dataclass_fields__
        held = [(name, identity(getattr(value, name))) for name in names if hasattr(value, name)]
    else:
        held = value
    return kind, held


def _zone(zone: dt.tzinfo | None) -> Any:
    if isinstance(zone, dt.timezone):
        return dt.timezone, zone.utcoffset(None), zone.tzname(None)
    return type(zone), zone.key if isinstance(zone, ZoneInfo) else None


def _later(value: Derived, later: Any) -> Derived:
    value.later = later
    return value


TEXT = st.text(st.characters(exclude_categories=()))  # lone surrogates too
ZONES = st.one_of(
    st.none(),
    st.timezones(),
    st.builds(dt.timezone, st.integers(-1439, 1439).map(lambda minutes: dt.timedelta(minutes=minutes))),
    st.builds(dt.timezone, st.timedeltas(dt.timedelta(hours=-23), dt.timedelta(hours=23)), st.text()),
)
HASHABLE_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**70), 2**70),
    st.integers(min_value=2**200) | st.integers(max_value=-(2**200)),
    st.sampled_from([2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, -1, 0]),
    st.floats(),
    st.complex_numbers(),
    TEXT,
    st.binary(),
    st.decimals().filter(lambda value: not value.is_snan()),
    st.uuids(),
    st.dates(),
    st.timedeltas(),
    st.builds(lambda value, fold: value.replace(fold=fold), st.datetimes(timezones=ZONES), st.integers(0, 1)),
    st.builds(lambda value, fold: value.replace(fold=fold), st.times(timezones=ZONES), st.integers(0, 1)),
    st.builds(TransactionAttempt, st.integers(1), st.integers(1)),
    st.sampled_from([*Colour, *Level, *Right, Right.READ | Right.RUN, Right(0)]),
)
HASHABLE = st.recursive(
    HASHABLE_LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.frozensets(inner, max_size=3),
        st.builds(FrozenSlots, inner, inner),
        st.builds(Pair, inner, inner),
    ),
    max_leaves=6,
)
VALUES = st.recursive(
    HASHABLE | st.binary().map(bytearray) | st.just(Decimal("sNaN12")),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=3).map(tuple),
        st.sets(HASHABLE, max_size=3),
        st.dictionaries(HASHABLE, inner, max_size=3),
        st.builds(Base, inner),
        st.builds(Derived, inner, inner),
        st.builds(_later, st.builds(Derived, inner), inner),
        st.builds(Frozen, inner, inner),
        st.builds(Slots, inner),
        st.builds(Pair, inner, inner),
    ),
    max_leaves=12,
)

EXAMPLES: list[Any] = [
    None, True, False, 0, 1, -1, 2**63, -(2**63) - 1, 2**1000, -(2**1000), 0.0, -0.0, 1.0, float("inf"), float("-inf"),
    float("nan"), 5e-324, complex(-0.0, float("nan")), "", "naïve 🐈", "\ud800", "\udc00\ud800", b"", b"\x00\xff",
    bytearray(b""), bytearray(b"ab"), [bytearray(b"a"), {"k": [bytearray(b"b")]}], (bytearray(b"a"), b"a"),
    {"a": {1: [2, (3,)]}}, {(1, (2, "x")): 1, frozenset({1}): 2, None: 3, b"k": 4, 1.5: 5, "1": 6, 1: 7},
    (), ((),), [], {}, set(), frozenset(), {frozenset({(1, 2)})}, [[1, "a"], [2, "b"]],
    dt.date.min, dt.date.max, dt.datetime.min, dt.datetime.max, dt.time.min, dt.time.max,
    dt.datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=0),
    dt.datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1),
    dt.datetime(2026, 1, 1, tzinfo=dt.UTC), dt.datetime(2026, 1, 1, tzinfo=ZoneInfo("UTC")),
    dt.datetime(2026, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1), "CET")),
    dt.datetime(2026, 1, 1, tzinfo=dt.timezone(dt.timedelta(0), "Z")),
    dt.datetime(2026, 1, 1, tzinfo=dt.timezone(-dt.timedelta(hours=3, microseconds=1))),
    dt.time(1, 2, 3, 4, tzinfo=dt.UTC, fold=1), dt.timedelta.min, dt.timedelta.max, dt.timedelta(-1, 1, 1),
    Decimal("1.10"), Decimal("-0"), Decimal("NaN"), Decimal("sNaN7"), Decimal("-Infinity"), Decimal("1E+999999"),
    uuid.UUID(int=0), uuid.UUID("12345678-1234-5678-1234-567812345678"), TransactionAttempt(1, 2),
    Colour.RED, Colour.CRIMSON, Level.HIGH, Right.READ | Right.RUN, Right(0), Pair(1, (2,)), Base([1]),
    Derived(1, Base(2)), _later(Derived(1), 3), Frozen(1, hidden=2), Slots({1}), FrozenSlots((1,), b"x"),
    {FrozenSlots(1): Pair(FrozenSlots(2))},
]  # fmt: skip


def round_trip(value: Any, registry: Registry = REGISTRY) -> Any:
    """Return the value as it is read again."""
    return registry.unpack(registry.pack(value))
