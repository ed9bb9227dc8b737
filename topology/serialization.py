"""msgpack with registered types: what kryo was to Storm.

The value and its type survive the round trip. Bytes are never unpickled; what is not ours is `CorruptData`.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import functools
import reprlib
import types
import uuid
import zoneinfo
from collections.abc import Callable, Iterable
from decimal import Decimal
from itertools import chain
from typing import Any, Protocol

from stormline.topology.attempt import TransactionAttempt
from stormline.topology.errors import (
    CorruptData,
    InvalidRegistration,
    SerializationError,
    UnregisteredClass,
    shown,
)
from stormline.topology.packing import msgpack


class Serializer(Protocol):
    """Turns objects of one class into built-in values and back."""

    def to_data(self, obj: Any) -> Any:
        """Return `obj` as values that are serializable already."""

    def from_data(self, data: Any) -> Any:
        """Return the object that `to_data` gave `data` for."""


class _NamedTupleSerializer:
    def __init__(self, cls: Any) -> None:
        self._cls = cls

    def to_data(self, obj: Any) -> Any:
        return list(obj)

    def from_data(self, data: Any) -> Any:
        return self._cls._make(_only(list, data))


class _DataclassSerializer:
    """Writes the fields, those of bases and those outside `__init__` too; `__init__` does not run again."""

    def __init__(self, cls: Any) -> None:
        self._cls = cls
        fields = dataclasses.fields(cls)
        self._names = frozenset(field.name for field in fields)
        self._required = frozenset(field.name for field in fields if field.init)

    def to_data(self, obj: Any) -> Any:
        attributes = getattr(obj, "__dict__", {})
        if len(attributes) > len(self._names) or not attributes.keys() <= self._names:
            self._check_attributes(attributes)
        return {name: getattr(obj, name) for name in sorted(self._names) if hasattr(obj, name)}

    def _check_attributes(self, attributes: dict[str, Any]) -> None:
        for name in attributes:
            # What a cached_property keeps is computed again; anything else would be lost.
            if name not in self._names and not isinstance(getattr(self._cls, name, None), functools.cached_property):
                raise UnregisteredClass(
                    f"attribute {name!r} of a {self._cls.__qualname__} is no field of the dataclass and would be lost; "
                    f"declare it as a field, with field(init=False), or register {self._cls.__qualname__} with a "
                    "serializer"
                )

    def from_data(self, data: Any) -> Any:
        if type(data) is not dict or not self._required <= data.keys() <= self._names:
            raise CorruptData(
                f"a {self._cls.__qualname__} needs the fields {sorted(self._names)}, got {reprlib.repr(data)}"
            )
        obj = self._cls.__new__(self._cls)
        for name, value in data.items():
            object.__setattr__(obj, name, value)
        return obj


class _EnumSerializer:
    def __init__(self, cls: Any) -> None:
        self._cls = cls

    def to_data(self, obj: Any) -> Any:
        return obj.name

    def from_data(self, data: Any) -> Any:
        return self._cls[data]


class _FlagSerializer:
    def __init__(self, cls: Any) -> None:
        self._cls = cls

    def to_data(self, obj: Any) -> Any:
        return obj.value  # combinations have no name

    def from_data(self, data: Any) -> Any:
        return self._cls(data)


def _default_serializer(cls: type) -> Serializer:
    if issubclass(cls, enum.Enum):  # first: an Enum of dataclass members is both
        return _FlagSerializer(cls) if issubclass(cls, enum.Flag) else _EnumSerializer(cls)
    if issubclass(cls, tuple) and hasattr(cls, "_make"):
        return _NamedTupleSerializer(cls)
    if dataclasses.is_dataclass(cls):
        holding = [base.__qualname__ for base in cls.__mro__ if base in _HOLDING]
        if holding:
            raise InvalidRegistration(
                f"dataclass {cls.__qualname__} is a {holding[0]} too, which holds more than its fields; "
                "pass a serializer with to_data(obj) and from_data(data)"
            )
        return _DataclassSerializer(cls)
    raise InvalidRegistration(
        f"class {cls.__qualname__} is no dataclass, NamedTuple or Enum; "
        "pass a serializer with to_data(obj) and from_data(data)"
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Registration:
    """A class that may travel, under a name that does not depend on the order of registrations."""

    cls: type
    serializer: Serializer
    name: str

    @classmethod
    def of(cls, target: type, serializer: Serializer | type[Serializer] | None = None) -> Registration:
        """Register `target`; dataclasses, NamedTuples and Enums need no serializer.

        Raises:
            InvalidRegistration: `target` is no class, is built in, or needs a serializer.
        """
        if not isinstance(target, type) or isinstance(
            target, types.GenericAlias
        ):  # Python 3.10 takes list[int] for one
            raise InvalidRegistration(f"register_serialization got {target!r}, expected a class")
        if target in _NATIVE or target in _BUILT_IN:
            raise InvalidRegistration(f"class {target.__qualname__} is built in and needs no registration; remove it")
        if serializer is None:
            serializer = _default_serializer(target)
        elif isinstance(serializer, type):
            try:
                serializer = serializer()
            except TypeError as error:
                raise InvalidRegistration(
                    f"the serializer of {target.__qualname__} cannot be made: {error}; pass an object instead"
                ) from error
        if not (hasattr(serializer, "to_data") and hasattr(serializer, "from_data")):
            raise InvalidRegistration(
                f"the serializer of {target.__qualname__} is a {type(serializer).__name__} without "
                "to_data(obj) and from_data(data)"
            )
        return cls(target, serializer, f"{target.__module__}.{target.__qualname__}")


_REGISTERED = 64
DEPTH_MAX = 64

_NATIVE = frozenset({type(None), bool, float, str, bytes, list, dict})
_HOLDING = frozenset({int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset, BaseException})
_BUFFERS = frozenset({bytearray, memoryview})
_NESTING = frozenset({list, dict})
_LISTS = frozenset({list})
_SETS = frozenset({set, frozenset})
_LOOKED_FOR = _BUFFERS | _NESTING

_Encoder = Callable[[Any], Any]


def _ints(data: Any, n: int) -> list[int]:
    if type(data) is not list or len(data) != n or any(type(item) is not int for item in data):
        raise CorruptData(f"expected a list of {n} whole numbers, got {reprlib.repr(data)}")
    return data


def _only(kind: type, data: Any) -> Any:
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
    return dt.timezone(offset, _only(str, data[3])) if len(data) > 3 else dt.timezone(offset)


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
    return complex(_only(float, real), _only(float, imag))


# Per class: its code on the wire, to data, from data. Decoders take nothing but what their encoder gives:
# bytearray(10**12) or an argument of another type would do something else than fail.
_BUILT_IN: dict[type, tuple[int, _Encoder, _Encoder]] = {
    tuple: (1, list, lambda d: tuple(_only(list, d))),
    set: (2, list, lambda d: set(_only(list, d))),
    frozenset: (3, list, lambda d: frozenset(_only(list, d))),
    int: (4, _big_int, lambda d: int.from_bytes(d, "big", signed=True)),
    dt.datetime: (
        5,
        lambda v: [v.year, v.month, v.day, v.hour, v.minute, v.second, v.microsecond, v.fold, _zone(v.tzinfo)],
        _datetime,
    ),
    dt.date: (6, dt.date.toordinal, lambda d: dt.date.fromordinal(_only(int, d))),
    dt.timedelta: (7, lambda v: [v.days, v.seconds, v.microseconds], lambda d: dt.timedelta(*_ints(d, 3))),
    Decimal: (8, str, lambda d: Decimal(_only(str, d))),
    uuid.UUID: (9, lambda v: v.bytes, lambda d: uuid.UUID(bytes=_only(bytes, d))),
    bytearray: (10, bytes, lambda d: bytearray(_only(bytes, d))),
    dt.time: (11, lambda v: [v.hour, v.minute, v.second, v.microsecond, v.fold, _zone(v.tzinfo)], _time),
    complex: (12, lambda v: [v.real, v.imag], _complex),
    TransactionAttempt: (
        13,
        lambda v: [v.transaction_id, v.attempt_id],
        lambda d: TransactionAttempt(*_ints(d, 2)),
    ),
}
_BUILT_IN_DECODERS = {code: decode for code, _, decode in _BUILT_IN.values()}


def _too_deep() -> SerializationError:
    return SerializationError(f"a value is nested deeper than {DEPTH_MAX} levels, or holds itself")


def _holds_buffers(value: Any, levels_max: int | None) -> bool:
    """Tell whether a bytearray or memoryview stands in the lists and dicts of `value`: msgpack would make it bytes.

    Raises:
        SerializationError: there are more than `levels_max` lists and dicts inside each other.
    """
    if type(value) is list and (
        _LOOKED_FOR.isdisjoint(map(type, value))
        or (_LISTS.issuperset(map(type, value)) and _LOOKED_FOR.isdisjoint(map(type, chain.from_iterable(value))))
    ):
        return False  # what most values are: rows of a block, and one row
    found, levels, level = False, 0, [value]
    while not _LOOKED_FOR.isdisjoint(map(type, level)):
        if levels_max is not None and levels > levels_max:
            raise _too_deep()
        levels += 1
        found = found or not _BUFFERS.isdisjoint(map(type, level))
        # Each object once a level: lists that hold a list twice, over and over, do not grow.
        inner = {id(item): item for item in level if type(item) in _NESTING}.values()
        lists = [item if type(item) is list else [*item, *item.values()] for item in inner]
        if _LOOKED_FOR.isdisjoint(map(type, chain.from_iterable(lists))):
            return found
        level = list(chain.from_iterable(lists))
    return found


def _with_buffers(value: Any) -> Any:
    kind = type(value)
    if kind is bytearray:
        return msgpack.ExtType(_BUILT_IN[bytearray][0], _packb(bytes(value)))
    if kind is memoryview:
        raise UnregisteredClass("a memoryview cannot be written; make it bytes")
    if kind is list:
        return [_with_buffers(item) for item in value]
    if kind is dict:
        return {_with_buffers(key): _with_buffers(item) for key, item in value.items()}
    return value


def _packb(value: Any, default: _Encoder | None = None) -> bytes:
    packer = msgpack.Packer(default=default, strict_types=True, use_bin_type=True, unicode_errors="surrogatepass")
    return packer.pack(value)


class Registry:
    """The wire format of one topology: msgpack, the built-in types, and the registered classes.

    Raises:
        InvalidRegistration: two different classes, or serializers, claim one name.
    """

    def __init__(self, registrations: Iterable[Registration] = ()) -> None:
        self._by_name: dict[str, Registration] = {}
        self._by_class: dict[type, Registration] = {}
        for registration in registrations:
            other = self._by_name.setdefault(registration.name, registration)
            if other.cls is not registration.cls:
                raise InvalidRegistration(
                    f"two different classes are registered as {registration.name!r}; rename one, or define it once"
                )
            if type(other.serializer) is not type(registration.serializer):
                raise InvalidRegistration(
                    f"class {registration.name!r} is registered with the serializers {type(other.serializer).__name__} "
                    f"and {type(registration.serializer).__name__}; keep one"
                )
            self._by_class[registration.cls] = registration

    def pack(self, value: Any) -> bytes:
        """Return `value` as bytes.

        Raises:
            UnregisteredClass: it holds an object of a class that was not registered.
            SerializationError: it is nested too deeply.
        """
        try:
            packed = _packb(value, self._encode_outermost)
            # Without the first byte of a bin there is none: no need to look.
            if (b"\xc4" in packed or b"\xc5" in packed or b"\xc6" in packed) and _holds_buffers(value, None):
                return _packb(_with_buffers(value), self._encode_outermost)
            return packed
        except UnregisteredClass:
            raise
        except (ValueError, OverflowError, RecursionError) as error:
            raise SerializationError(f"a {type(value).__name__} cannot be written: {error}") from error

    def _pack_inner(self, value: Any, depth: int) -> bytes:
        # msgpack bounds its own recursion, but not that of one call in another: the C stack would overflow.
        if depth > DEPTH_MAX:
            raise _too_deep()
        if _holds_buffers(value, DEPTH_MAX):
            value = _with_buffers(value)
        return _packb(value, lambda inner: self._encode(inner, depth + 1))

    def unpack(self, data: bytes) -> Any:
        """Return the value that `pack` gave `data` for.

        Raises:
            CorruptData: `data` is nothing that `pack` writes, or names a class that is not registered here.
        """
        try:
            return self._unpack(data, 0)
        except CorruptData:
            raise
        except Exception as error:
            raise CorruptData(
                f"{len(data)} bytes that Stormline did not write (or that were cut): {type(error).__name__}: {error}"
            ) from error

    def _unpack(self, data: bytes, depth: int) -> Any:
        if depth > DEPTH_MAX:
            raise CorruptData(f"nested deeper than {DEPTH_MAX} levels")
        return msgpack.unpackb(
            data,
            ext_hook=lambda code, payload: self._decode(code, payload, depth + 1),
            strict_map_key=False,
            raw=False,
            unicode_errors="surrogatepass",
        )

    def _encode_outermost(self, value: Any) -> Any:
        return self._encode(value, 1)

    def _encode(self, value: Any, depth: int) -> Any:
        kind = type(value)
        built_in = _BUILT_IN.get(kind)
        if built_in is not None:
            code, encode, _ = built_in
            data = encode(value)
            if kind in _SETS:  # their order differs from process to process, and the bytes are compared
                data.sort(key=lambda item: self._pack_inner(item, depth))
            return msgpack.ExtType(code, data if kind is int else self._pack_inner(data, depth))
        registration = self._by_class.get(kind)
        if registration is None:
            raise UnregisteredClass(
                f"class {kind.__module__}.{kind.__qualname__} is not registered (value {shown(value)}); "
                f"call config.register_serialization({kind.__qualname__})"
            )
        data = [registration.name, registration.serializer.to_data(value)]
        return msgpack.ExtType(_REGISTERED, self._pack_inner(data, depth))

    def _decode(self, code: int, payload: bytes, depth: int) -> Any:
        if code == 4:
            return _BUILT_IN_DECODERS[4](payload)
        data = self._unpack(payload, depth)
        if code == _REGISTERED:
            return self._registered(*_only(list, data))
        decode = _BUILT_IN_DECODERS.get(code)
        if decode is None:
            raise CorruptData(f"unknown msgpack extension type {code}")
        return decode(data)

    def _registered(self, name: str, data: Any) -> Any:
        registration = self._by_name.get(name)
        if registration is None:
            raise CorruptData(f"an object of class {name!r}, which is not registered in this topology")
        try:
            return registration.serializer.from_data(data)
        except CorruptData:
            raise
        except Exception as error:
            raise CorruptData(
                f"the serializer of {name!r} cannot read {reprlib.repr(data)}: {type(error).__name__}: {error}"
            ) from error


PLAIN = Registry()
