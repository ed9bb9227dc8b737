"""Columns of Python values: into pyarrow arrays and back, with nothing changed on the way.

| Python | pyarrow | and back |
|---|---|---|
| None | null | None |
| bool, str, bytes | bool, string, binary | the same |
| int of at most 64 bits with sign | int64 | int |
| float; int and float mixed, where exact | double | float |
| Decimal, finite, of at most 76 digits | decimal of the column's greatest precision and scale | equal |
| date, time without zone, timedelta | date32, time64[us], duration[us] | the same |
| datetime without, or with, a zone | timestamp[us], in the zone of the column's first value | equal |
| list, and dict with the same text keys in every row, of these | list, struct | the same |

All values of a column are of one kind, or None. Of pyarrow's other types the nanosecond ones come out as Python's
own, in microseconds, where that loses nothing; dictionaries come out as their values.
"""

from __future__ import annotations

import datetime as dt
import reprlib
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import chain
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
        ColumnCannotTravel: its nanoseconds are more than Python's own types can hold.
    """
    pa = pyarrow_for("a column")
    coarser = in_microseconds(array.type)
    if coarser is not None:
        try:
            array = array.cast(coarser)
        except pa.ArrowInvalid as error:
            raise ColumnCannotTravel(f"type {array.type} holds what Python's {coarser} cannot: {error}") from None
    try:
        values: list[Any] = array.to_pylist()
    except (pa.ArrowException, ValueError, OverflowError, LookupError) as error:
        raise ColumnCannotTravel(f"type {array.type} holds what no value of Python's can: {error}") from None
    return values


def in_microseconds(kind: Any) -> Any:
    """Return the type to cast to, where Python's own datetime would lose nanoseconds without a word."""
    pa = pyarrow_for("a column")
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if pa.types.is_duration(kind) and kind.unit == "ns":
        return pa.duration("us")
    return pa.time64("us") if pa.types.is_time64(kind) and kind.unit == "ns" else None


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
    zoned = {value.tzinfo is not None for value in values}
    if len(zoned) > 1 or (kind is dt.time and True in zoned):
        what = "a time with a zone" if kind is dt.time else "datetimes with and without a zone"
        raise ColumnCannotTravel(f"{what} would lose it in a column; {_REMEDY}")


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
