"""msgpack with registered types: what kryo was to Storm.

The value and its type survive the round trip. Bytes are never unpickled; what is not ours is `CorruptData`.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import uuid
import zoneinfo
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, Protocol

from stormline.topology.attempt import TransactionAttempt
from stormline.topology.errors import (
    CorruptData,
    InvalidRegistration,
    SerializationError,
    UnregisteredClass,
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
        return self._cls._make(data)


class _DataclassSerializer:
    def __init__(self, cls: Any) -> None:
        self._cls = cls
        self._names = [field.name for field in dataclasses.fields(cls)]

    def to_data(self, obj: Any) -> Any:
        return {name: getattr(obj, name) for name in self._names}

    def from_data(self, data: Any) -> Any:
        if not isinstance(data, dict) or set(data) != set(self._names):
            raise CorruptData(f"a {self._cls.__name__} needs the fields {self._names}, got {data!r:.200}")
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


def _default_serializer(cls: type) -> Serializer:
    if issubclass(cls, tuple) and hasattr(cls, "_make"):
        return _NamedTupleSerializer(cls)
    if dataclasses.is_dataclass(cls):
        return _DataclassSerializer(cls)
    if issubclass(cls, enum.Enum):
        return _EnumSerializer(cls)
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
    def of(cls, target: type, serializer: Serializer | None = None) -> Registration:
        """Register `target`; dataclasses, NamedTuples and Enums need no serializer.

        Raises:
            InvalidRegistration: `target` is no class, or needs a serializer.
        """
        if not isinstance(target, type):
            raise InvalidRegistration(f"register_serialization got {target!r}, expected a class")
        if serializer is None:
            serializer = _default_serializer(target)
        elif isinstance(serializer, type):
            serializer = serializer()
        if not (hasattr(serializer, "to_data") and hasattr(serializer, "from_data")):
            raise InvalidRegistration(
                f"the serializer of {target.__qualname__} is a {type(serializer).__name__} without "
                "to_data(obj) and from_data(data)"
            )
        return cls(target, serializer, f"{target.__module__}.{target.__qualname__}")


_REGISTERED = 64
DEPTH_MAX = 64

_Encoder = Callable[[Any], Any]


def _zone(value: dt.tzinfo | None) -> Any:
    if value is None:
        return None
    if type(value) is dt.timezone:
        offset = value.utcoffset(None)
        return [offset.days, offset.seconds, offset.microseconds]
    if isinstance(value, zoneinfo.ZoneInfo) and value.key:
        return value.key
    raise UnregisteredClass(
        f"time zone {value!r} ({type(value).__name__}) cannot be written; use datetime.timezone or zoneinfo.ZoneInfo"
    )


def _unzone(data: Any) -> dt.tzinfo | None:
    if data is None:
        return None
    return zoneinfo.ZoneInfo(data) if isinstance(data, str) else dt.timezone(dt.timedelta(*data))


def _big_int(value: int) -> bytes:
    return value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)


# Per class: its code on the wire, to data, from data.
_BUILT_IN: dict[type, tuple[int, _Encoder, _Encoder]] = {
    tuple: (1, list, tuple),
    set: (2, list, set),
    frozenset: (3, list, frozenset),
    int: (4, _big_int, lambda d: int.from_bytes(d, "big", signed=True)),
    dt.datetime: (
        5,
        lambda v: [v.year, v.month, v.day, v.hour, v.minute, v.second, v.microsecond, v.fold, _zone(v.tzinfo)],
        lambda d: dt.datetime(*d[:7]).replace(tzinfo=_unzone(d[8]), fold=d[7]),
    ),
    dt.date: (6, dt.date.toordinal, dt.date.fromordinal),
    dt.timedelta: (7, lambda v: [v.days, v.seconds, v.microseconds], lambda d: dt.timedelta(*d)),
    Decimal: (8, str, Decimal),
    uuid.UUID: (9, lambda v: v.bytes, lambda d: uuid.UUID(bytes=d)),
    bytearray: (10, bytes, bytearray),
    dt.time: (
        11,
        lambda v: [v.hour, v.minute, v.second, v.microsecond, v.fold, _zone(v.tzinfo)],
        lambda d: dt.time(*d[:4]).replace(tzinfo=_unzone(d[5]), fold=d[4]),
    ),
    complex: (12, lambda v: [v.real, v.imag], lambda d: complex(*d)),
    TransactionAttempt: (
        13,
        lambda v: [v.transaction_id, v.attempt_id],
        lambda d: TransactionAttempt(*d),
    ),
}
_BUILT_IN_DECODERS = {code: decode for code, _, decode in _BUILT_IN.values()}


class Registry:
    """The wire format of one topology: msgpack, the built-in types, and the registered classes.

    Raises:
        InvalidRegistration: two different classes, or serializers, claim one name.
    """

    def __init__(self, registrations: Iterable[Registration] = ()) -> None:
        self._by_name: dict[str, Registration] = {}
        self._by_class: dict[type, Registration] = {}
        for registration in registrations:
            self._by_name[registration.name] = registration
            self._by_class[registration.cls] = registration

    def pack(self, value: Any) -> bytes:
        """Return `value` as bytes.

        Raises:
            UnregisteredClass: it holds an object of a class that was not registered.
            SerializationError: it is nested too deeply.
        """
        try:
            packed: bytes = msgpack.packb(
                value, default=self._encode, strict_types=True, use_bin_type=True, unicode_errors="surrogatepass"
            )
        except UnregisteredClass:
            raise
        except (ValueError, OverflowError, RecursionError) as error:
            raise SerializationError(f"a {type(value).__name__} cannot be written: {error}") from error
        return packed

    def unpack(self, data: bytes) -> Any:
        """Return the value that `pack` gave `data` for.

        Raises:
            CorruptData: `data` is nothing that `pack` writes, or names a class that is not registered here.
        """
        try:
            return self._unpack(data, 0)
        except CorruptData:
            raise
        except (ValueError, TypeError, KeyError, IndexError, OverflowError, ArithmeticError, AttributeError,
                RecursionError, msgpack.UnpackException, zoneinfo.ZoneInfoNotFoundError) as error:  # fmt: skip
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

    def _encode(self, value: Any) -> Any:
        kind = type(value)
        built_in = _BUILT_IN.get(kind)
        if built_in is not None:
            code, encode, _ = built_in
            data = encode(value)
            return msgpack.ExtType(code, data if kind is int else self.pack(data))
        registration = self._by_class.get(kind)
        if registration is None:
            raise UnregisteredClass(
                f"class {kind.__module__}.{kind.__qualname__} is not registered (value {value!r:.80}); "
                f"call config.register_serialization({kind.__qualname__})"
            )
        return msgpack.ExtType(_REGISTERED, self.pack([registration.name, registration.serializer.to_data(value)]))

    def _decode(self, code: int, payload: bytes, depth: int) -> Any:
        if code == 4:
            return _BUILT_IN_DECODERS[4](payload)
        data = self._unpack(payload, depth)
        if code == _REGISTERED:
            name, inner = data
            registration = self._by_name.get(name)
            if registration is None:
                raise CorruptData(f"an object of class {name!r}, which is not registered in this topology")
            return registration.serializer.from_data(inner)
        decode = _BUILT_IN_DECODERS.get(code)
        if decode is None:
            raise CorruptData(f"unknown msgpack extension type {code}")
        return decode(data)


PLAIN = Registry()
