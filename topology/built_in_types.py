"""The classes that may travel without registration: for each its code on the wire, and how it is written and read."""

from __future__ import annotations

import datetime as dt
import reprlib
import uuid
import zoneinfo
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from stormline.topology.attempt import TransactionAttempt
from stormline.topology.errors import CorruptData, UnregisteredClass, shown

Encoder = Callable[[Any], Any]

NATIVE = frozenset({type(None), bool, float, str, bytes, list, dict})
"""What msgpack knows itself, of the right type."""


def _ints(data: Any, n: int) -> list[int]:
    if type(data) is not list or len(data) != n or any(type(item) is not int for item in data):
        raise CorruptData(f"expected a list of {n} whole numbers, got {reprlib.repr(data)}")
    return data


def only(kind: type, data: Any) -> Any:
    """Return `data` if it is of exactly this class; raise `CorruptData` where it is not."""
    if type(data) is not kind:
        raise CorruptData(f"expected {kind.__name__}, got {reprlib.repr(data)}")
    return data


def _zone(value: dt.tzinfo | None) -> Any:
    if value is None:
        return None
    if type(value) is dt.timezone:
        offset = value.utcoffset(None)
        name = value.tzname(None)
        written = [offset.days, offset.seconds, offset.microseconds]
        return written if name == dt.timezone(offset).tzname(None) else [*written, name]
    if type(value) is zoneinfo.ZoneInfo and value.key:
        return value.key
    raise UnregisteredClass(
        f"time zone {shown(value)} ({type(value).__name__}) cannot be written; use datetime.timezone or "
        "zoneinfo.ZoneInfo with a key"
    )


def _unzone(data: Any) -> dt.tzinfo | None:
    if data is None:
        return None
    if type(data) is str:
        try:
            return zoneinfo.ZoneInfo(data)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise CorruptData(
                f"time zone {reprlib.repr(data)} is not known on this machine; install the package tzdata"
            ) from error
    offset = dt.timedelta(*_ints(data[:3], 3))
    return dt.timezone(offset, only(str, data[3])) if len(data) > 3 else dt.timezone(offset)


def _big_int(value: int) -> bytes:
    return value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)


def _datetime(data: Any) -> dt.datetime:
    year, month, day, hour, minute, second, microsecond, fold = _ints(data[:8], 8)
    (zone,) = data[8:]
    return dt.datetime(year, month, day, hour, minute, second, microsecond, tzinfo=_unzone(zone), fold=fold)


def _time(data: Any) -> dt.time:
    hour, minute, second, microsecond, fold = _ints(data[:5], 5)
    (zone,) = data[5:]
    return dt.time(hour, minute, second, microsecond, tzinfo=_unzone(zone), fold=fold)


def _complex(data: Any) -> complex:
    real, imag = data
    return complex(only(float, real), only(float, imag))


# Per class: its code on the wire, to data, from data. Decoders take nothing but what their encoder gives:
# bytearray(10**12) or an argument of another type would do something else than fail.
BUILT_IN: dict[type, tuple[int, Encoder, Encoder]] = {
    tuple: (1, list, lambda d: tuple(only(list, d))),
    set: (2, list, lambda d: set(only(list, d))),
    frozenset: (3, list, lambda d: frozenset(only(list, d))),
    int: (4, _big_int, lambda d: int.from_bytes(d, "big", signed=True)),
    dt.datetime: (
        5,
        lambda v: [v.year, v.month, v.day, v.hour, v.minute, v.second, v.microsecond, v.fold, _zone(v.tzinfo)],
        _datetime,
    ),
    dt.date: (6, dt.date.toordinal, lambda d: dt.date.fromordinal(only(int, d))),
    dt.timedelta: (7, lambda v: [v.days, v.seconds, v.microseconds], lambda d: dt.timedelta(*_ints(d, 3))),
    Decimal: (8, str, lambda d: Decimal(only(str, d))),
    uuid.UUID: (9, lambda v: v.bytes, lambda d: uuid.UUID(bytes=only(bytes, d))),
    bytearray: (10, bytes, lambda d: bytearray(only(bytes, d))),
    dt.time: (11, lambda v: [v.hour, v.minute, v.second, v.microsecond, v.fold, _zone(v.tzinfo)], _time),
    complex: (12, lambda v: [v.real, v.imag], _complex),
    TransactionAttempt: (
        13,
        lambda v: [v.transaction_id, v.attempt_id],
        lambda d: TransactionAttempt(*_ints(d, 2)),
    ),
}
BUILT_IN_DECODERS = {code: decode for code, _, decode in BUILT_IN.values()}
