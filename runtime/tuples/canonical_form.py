"""Canonical forms: equal values made equal bytes, for hashes that are the same everywhere (law 9, routing)."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
import struct
import sys
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache, lru_cache
from hashlib import blake2b
from typing import Any

from stormline.topology.attempt import TransactionAttempt
from stormline.topology.errors import UnregisteredClass
from stormline.topology.serialization import Registry

INT_BITS_MAX = 16_384
DECIMAL_DIGITS_MAX = 5_000
"""An int of more digits takes seconds to make; more bits than `INT_BITS_MAX` in any case."""
_PRIME = 2**521 - 1
_MIDNIGHT = dt.datetime.min
_PLAIN_CLASSES: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (int, int.__int__),
    (float, float.__float__),
    (str, str.__str__),
    (bytes, lambda value: bytes(memoryview(value))),
    (tuple, tuple),
    (Decimal, Decimal),
    (Fraction, lambda value: Fraction(value.numerator, value.denominator)),
)
"""For each the way from an object of a subclass to one that is exactly of it."""


def canonical(value: Any, registry: Registry) -> Any:
    """Return `value` so that equal values give equal bytes: 1, 1.0 and True; {1, 2} and {2, 1}.

    Numbers of the same value are one key, whatever their types: int, float, bool, complex, Decimal, Fraction, and
    numpy's. So are a list and a tuple of the same, and what is of a subclass of number, text, bytes or tuple that does
    not compare otherwise (an IntEnum, a NamedTuple) and its base. A dataclass is its class's name and those of its
    fields that are compared. An object of any other class, and one whose class has an `__eq__` of its own, is what its
    serializer writes, under the name of the class: another key than anything built in, though Python may take both for
    equal; its serializer must give equal ones equal bytes. A moment that a zone's clocks show twice is the moment,
    though Python takes both for equal.
    """
    kind = type(value)
    if kind is str or value is None or kind is bytes:
        return value
    if kind is int:
        return value if value.bit_length() <= INT_BITS_MAX else _long_number(value)
    if kind is bool:
        return int(value)
    if kind is float:
        if value != value:  # there are many bit patterns of it
            return math.nan
        return int(value) if value.is_integer() else value
    if kind is Decimal:
        return _of_decimal(value)
    if kind is Fraction:
        return _of_ratio(value.numerator, value.denominator)
    if kind is list or kind is tuple:
        return [canonical(item, registry) for item in value]
    if kind is dict:
        pairs = ([canonical(k, registry), canonical(v, registry)] for k, v in value.items())
        return sorted(pairs, key=registry.pack)
    if kind is set or kind is frozenset:
        return sorted((canonical(item, registry) for item in value), key=registry.pack)
    if kind is bytearray:
        return bytes(value)
    if kind is dt.datetime:
        offset = value.utcoffset()
        return value.replace(fold=0) if offset is None else _in_utc(value, offset)
    if kind is dt.time:
        return _without_zone(value)
    if kind is complex:
        return value + 0 if value.imag else canonical(value.real, registry)  # + 0: of 0.0 and -0.0 one
    for base, exactly in _PLAIN_CLASSES:
        if isinstance(value, base) and _compares_as(kind, base):
            return canonical(exactly(value), registry)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        return _of_numpy(numpy, value, registry)
    names = _compared_fields(kind)  # type: ignore[arg-type]  # mypy takes a type[Any] for unhashable
    if names is None:
        return value
    return [kind.__qualname__, *(canonical(getattr(value, name, None), registry) for name in names)]


def _compares_as(kind: type, base: type) -> bool:
    return bool(kind.__eq__ == base.__eq__)


def _of_decimal(value: Decimal) -> Any:
    if not value:
        return 0  # of any exponent
    if not value.is_finite():
        return float(value) if value.is_infinite() else str(value)
    if value.adjusted() <= DECIMAL_DIGITS_MAX and value == value.to_integral_value():
        whole = int(value)
        return whole if whole.bit_length() <= INT_BITS_MAX else _long_number(whole)
    as_float = float(value)
    if not math.isinf(as_float) and Decimal(as_float) == value:
        return as_float
    negative, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    unscaled = int(Decimal((negative, digits, 0)))
    return _number(bool(negative), abs(unscaled) * _power_of_ten(exponent))


@lru_cache
def _power_of_ten(exponent: int) -> int:
    return pow(10, exponent, _PRIME)


def _of_ratio(numerator: int, denominator: int) -> Any:
    if denominator == 1:
        return numerator if numerator.bit_length() <= INT_BITS_MAX else _long_number(numerator)
    try:
        as_float = numerator / denominator
        if as_float.as_integer_ratio() == (numerator, denominator):
            return as_float
    except OverflowError:
        pass
    if denominator % _PRIME == 0:
        return ["number", "over the prime"]
    return _number(numerator < 0, abs(numerator) * pow(denominator, -1, _PRIME))


def _long_number(value: int) -> Any:
    return _number(value < 0, abs(value))


def _number(negative: bool, magnitude: int) -> Any:
    """Return what stands for a number that no short int and no float is: its residue, for any type the same.

    Two numbers of one residue would be one key, which does no harm.
    """
    return ["number", negative, magnitude % _PRIME]


def _of_numpy(numpy: Any, value: Any, registry: Registry) -> Any:
    """Return a scalar of numpy as the number, text or bytes that it equals; others (moments, records) stay."""
    if isinstance(value, numpy.floating):
        return _of_ratio(*value.as_integer_ratio()) if numpy.isfinite(value) else canonical(float(value), registry)
    if isinstance(value, numpy.complexfloating):
        return canonical(complex(value) if value.imag else value.real, registry)
    if isinstance(value, (numpy.integer, numpy.bool_, numpy.str_, numpy.bytes_)):
        return value if isinstance(value, numpy.timedelta64) else canonical(value.item(), registry)
    return value


@cache
def _compared_fields(kind: type) -> tuple[str, ...] | None:
    """Name the fields that a dataclass compares; None for other classes, and where `__eq__` is not generated."""
    params = getattr(kind, "__dataclass_params__", None)
    if params is None or not params.eq or kind is TransactionAttempt:
        return None
    code = getattr(kind.__eq__, "__code__", None)
    if code is None or code.co_filename != "<string>":  # what dataclasses generates comes from no file
        return None
    return tuple(field.name for field in dataclasses.fields(kind) if field.compare)


def _in_utc(value: dt.datetime, offset: dt.timedelta) -> dt.datetime | dt.timedelta:
    try:
        return value.astimezone(dt.UTC).replace(fold=0)
    except OverflowError:  # at the very ends of time
        return value.replace(tzinfo=None) - _MIDNIGHT - offset


def _without_zone(value: dt.time) -> dt.time | dt.timedelta:
    """Return a time of day as what Python compares: a zone whose offset depends on the date counts as none."""
    offset = value.utcoffset()
    if offset is None:
        return value.replace(tzinfo=None, fold=0)
    return dt.datetime.combine(_MIDNIGHT, value.replace(tzinfo=None)) - _MIDNIGHT - offset


def stable_hashes(values: Sequence[Any], registry: Registry) -> tuple[int, int]:
    """Return two independent 64-bit hashes of `values`, the same in every process and for ever.

    Raises:
        UnregisteredClass: they hold an object of a class that was not registered.
    """
    try:
        packed = registry.pack([canonical(value, registry) for value in values])
    except UnregisteredClass:
        packed = registry.pack([_packable(value, registry) for value in values])
    digest = blake2b(packed, digest_size=16).digest()
    first, second = struct.unpack(">QQ", digest)
    return first, second


def _packable(value: Any, registry: Registry) -> Any:
    """Return the canonical form; `value` where a field holds what only the serializer of its dataclass can write."""
    try:
        form = canonical(value, registry)
        registry.pack(form)
    except UnregisteredClass:
        return value
    return form
