"""What rows are ordered by: numbers, and points in time as microseconds."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

from stormline.spouts.file.rows import RowProblem

Key = int | float | Decimal

FIRST: Key = -math.inf
"""Before all rows that have a time."""

_DIGITS_MAX = 100
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)


def order_key(value: Any) -> tuple[str, Key] | None:
    """Return the kind of a value of the field to order by, and what it is compared by; None where it is missing.

    Text is a number if it looks like one, else a point in time in ISO 8601. What has no time zone is UTC.

    Raises:
        RowProblem: it is neither a number nor a point in time.
    """
    if value is None or value == "":
        return None
    if isinstance(value, str):
        found = (_number_of(value) or _time_of(value)) if len(value) <= _DIGITS_MAX else None
        if found is not None:
            return found
    elif isinstance(value, dt.datetime):
        return "date-time", _microseconds(value)
    elif isinstance(value, dt.date):
        return "date-time", _microseconds(dt.datetime(value.year, value.month, value.day))
    elif isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        number = _number(value)
        if number is not None:
            return "number", number
    raise RowProblem(
        f"{value!r:.100} (a {type(value).__name__}) is no time to order by: expected a number, a datetime, or text "
        "such as '1700000000.5' or '2024-01-31T23:59:59Z'; convert others by types={…}"
    )


def _number(value: int | float | Decimal) -> Key | None:
    """Return a number such that it can be stored; None where it is none that anything happened at."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
        return int(value)
    exact = Decimal(value)
    return exact if exact.is_finite() and len(exact.as_tuple().digits) < _DIGITS_MAX else None


def _number_of(text: str) -> tuple[str, Key] | None:
    try:
        number = int(text) if text.isdecimal() else Decimal(text)
    except ArithmeticError:
        return None
    if isinstance(number, Decimal):
        return ("number", number) if number.is_finite() else None
    found = _number(number)
    return None if found is None else ("number", found)


def _time_of(text: str) -> tuple[str, Key] | None:
    text = text.strip()
    if text[-1:] in "Zz":
        text = text[:-1] + "+00:00"  # Python does not know "z"
    try:
        return "date-time", _microseconds(dt.datetime.fromisoformat(text))
    except ValueError:
        return None


def _microseconds(time: dt.datetime) -> int:
    if time.tzinfo is None:
        time = time.replace(tzinfo=dt.UTC)
    return (time - _EPOCH) // _MICROSECOND


def stored_key(key: Key) -> int | float | str:
    """Return what is stored of a key."""
    return str(key) if isinstance(key, Decimal) else key


def key_of(stored: int | float | str) -> Key:
    """Return the key again."""
    return Decimal(stored) if isinstance(stored, str) else stored


def is_stored_key(value: Any) -> bool:
    """Return whether it is what `stored_key` returns."""
    if type(value) is str:
        try:
            return len(value) < 2 * _DIGITS_MAX and Decimal(value).is_finite()
        except ArithmeticError:
            return False
    return type(value) is int or (type(value) is float and (math.isfinite(value) or value == FIRST))
