"""Columns of Python values: into pyarrow arrays and back, with nothing changed on the way.

| Python | pyarrow | and back |
|---|---|---|
| None | null | None |
| bool, str, bytes | bool, string, binary | the same |
| int of at most 64 bits with sign | int64 | int |
| float; int and float mixed, where exact | double | float |
| Decimal, finite, of at most 76 digits | decimal of the column's greatest precision and scale | equal |
| date, time without zone, timedelta | date32, time64[us], duration[us] | the same |
| datetime without, or with, a zone | timestamp[us], in the zone of the column's first value | equal, in that zone |
| list, and dict with the same text keys in every row, of these | list, struct | the same |

All values of a column are of one kind, or None. A column of nothing but None is of the type null. Of pyarrow's other
types the nanosecond ones come out as Python's own, in microseconds, where that loses nothing; dictionaries come out
as their values, maps as lists of pairs.
"""

from __future__ import annotations

import datetime as dt
import reprlib
import zoneinfo
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import chain
from types import NoneType
from typing import Any

from stormline.topology.arrow import pyarrow_for
from stormline.topology.errors import ColumnCannotTravel

_SCALARS = frozenset({bool, int, float, str, bytes, Decimal, dt.date, dt.timedelta})
_NUMBERS = frozenset({int, float})
_REMEDY = "emit a value that is of one built-in type in all rows, or let a row bolt take it"


def array_of(values: Sequence[Any]) -> Any:
    """Return a `pyarrow.Array` that holds `values`.

    Raises:
        ColumnCannotTravel: it would not hold them as they are; the message does not say whose they are.
    """
    pa = pyarrow_for("a column")
    _check_kinds(values)
    try:
        made = pa.array(values, from_pandas=False)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise _problem(pa, values, error) from None
    if isinstance(made, pa.ChunkedArray):
        raise ColumnCannotTravel("the column holds more than 2 GiB; emit smaller batches")
    return made


def values_of(array: Any) -> list[Any]:
    """Return the values of a pyarrow array.

    Raises:
        ColumnCannotTravel: it holds what Python's own types cannot, as nanoseconds, or a year beyond 9999.
    """
    pa = pyarrow_for("a column")
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()  # as it is, it gives its values twenty times as slowly
    coarser = in_microseconds(array.type)
    try:
        values: list[Any] = (array if coarser is None else array.cast(coarser)).to_pylist()
    except (pa.ArrowException, ValueError, OverflowError, LookupError) as error:
        raise ColumnCannotTravel(f"type {array.type} holds what no value of Python can: {error}") from None
    return values


def in_microseconds(kind: Any) -> Any:
    """Return the type to cast to, where Python's own types would lose nanoseconds without a word; None elsewhere.

    Within lists, structs, maps and dictionaries too: pyarrow would make values of pandas of them, where that is there.
    """
    pa = pyarrow_for("a column")
    types = pa.types
    if types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz) if kind.unit == "ns" else None
    if types.is_duration(kind):
        return pa.duration("us") if kind.unit == "ns" else None
    if types.is_time64(kind):
        return pa.time64("us") if kind.unit == "ns" else None
    if types.is_dictionary(kind):
        return in_microseconds(kind.value_type)
    if types.is_map(kind):
        key, item = in_microseconds(kind.key_type), in_microseconds(kind.item_type)
        return pa.map_(key or kind.key_type, item or kind.item_type) if key or item else None
    if types.is_struct(kind):
        fields = [(field, in_microseconds(field.type)) for field in map(kind.field, range(kind.num_fields))]
        if not any(coarser for _, coarser in fields):
            return None
        return pa.struct([field.with_type(coarser or field.type) for field, coarser in fields])
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        coarser = in_microseconds(kind.value_type)
        if coarser is None:
            return None
        inner = kind.value_field.with_type(coarser)
        if types.is_fixed_size_list(kind):
            return pa.list_(inner, kind.list_size)
        return pa.large_list(inner) if types.is_large_list(kind) else pa.list_(inner)
    return None


def _check_kinds(values: Iterable[Any]) -> None:
    """Raise `ColumnCannotTravel` where pyarrow would change a value without a word, or take the wrong ones."""
    values = list(values)
    kinds = set(map(type, values))
    kinds.discard(type(None))
    if len(kinds) > 1 and kinds != _NUMBERS:
        names = sorted(kind.__name__ for kind in kinds)
        raise ColumnCannotTravel(f"values of several types, {' and '.join(names)}, are in one column; {_REMEDY}")
    for kind in kinds:
        if kind in _SCALARS:
            continue
        present = [value for value in values if value is not None]
        if kind is list:
            _check_kinds(chain.from_iterable(present))
        elif kind is dict:
            _check_dicts(present)
        elif kind is dt.datetime or kind is dt.time:
            _check_zones(present, kind)
        else:
            raise ColumnCannotTravel(
                f"a {kind.__name__} ({reprlib.repr(present[0])}) has no place in a column; {_REMEDY}"
            )


def _check_dicts(dicts: list[dict[Any, Any]]) -> None:
    keys = dicts[0].keys()
    if not all(type(key) is str for key in keys) or any(item.keys() != keys for item in dicts):
        raise ColumnCannotTravel(f"dicts whose keys are not the same text in every row are in one column; {_REMEDY}")
    for key in keys:
        _check_kinds(item[key] for item in dicts)


def _check_zones(values: list[Any], kind: type) -> None:
    if any(value.fold and value.tzinfo is None for value in values):
        raise ColumnCannotTravel(
            f"a {kind.__name__} with fold=1 and without a zone would lose it in a column; {_REMEDY}"
        )
    zones = {id(value.tzinfo): value for value in values}
    zoned = {value.tzinfo is not None for value in zones.values()}
    if len(zoned) > 1 or (kind is dt.time and True in zoned):
        what = "a time with a zone" if kind is dt.time else "datetimes with and without a zone"
        raise ColumnCannotTravel(f"{what} would lose it in a column; {_REMEDY}")
    for value in zones.values():
        if type(value.tzinfo) not in (NoneType, zoneinfo.ZoneInfo) and not _keeps_zone(value):
            raise ColumnCannotTravel(f"the zone of {value!r} has no place in a column; {_REMEDY}")


def _keeps_zone(value: dt.datetime) -> bool:
    """Return whether pyarrow knows a zone that is not one of the database's: by its offset, or by its name."""
    pa = pyarrow_for("a column")
    try:
        return bool(pa.scalar(value).as_py() == value)
    except (pa.ArrowException, ValueError, OverflowError):
        return False


def _problem(pa: Any, values: Sequence[Any], error: Exception) -> ColumnCannotTravel:
    for value in values:
        try:
            pa.array([value], from_pandas=False)
        except Exception as alone:
            if type(value) is int:
                return ColumnCannotTravel(
                    f"the int {value!r:.40} has more than 64 bits; emit it as text, or let a row bolt take it"
                )
            kind = type(value).__name__
            return ColumnCannotTravel(f"the {kind} {reprlib.repr(value)} has no place in a column: {alone}; {_REMEDY}")
    return ColumnCannotTravel(f"the values do not go into one column: {error}; {_REMEDY}")
