"""Columns: what a map's keys and values are made of, and which Python values each takes.

Every store takes the same values, and gives back equal ones of the same types.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any

from stormline.state.errors import InvalidStore, RefusedValue
from stormline.topology.errors import did_you_mean, shown

NAME_CHARS_MAX = 48
"""PostgreSQL takes 63, of which "prev_" and "_removed" need some."""

INT_MAX = (1 << 63) - 1
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class ColumnType(Enum):
    """The type of a column, in every database by another name."""

    INTEGER = "int"
    REAL = "float"
    TEXT = "str"
    BYTES = "bytes"
    BOOLEAN = "bool"
    TIMESTAMP = "datetime"
    DATE = "date"
    DECIMAL = "Decimal"
    PACKED = "object"


_OF_PYTHON: dict[Any, ColumnType] = {
    int: ColumnType.INTEGER,
    float: ColumnType.REAL,
    str: ColumnType.TEXT,
    bytes: ColumnType.BYTES,
    bool: ColumnType.BOOLEAN,
    datetime: ColumnType.TIMESTAMP,
    date: ColumnType.DATE,
    Decimal: ColumnType.DECIMAL,
    object: ColumnType.PACKED,
}
PYTHON = {type_: kind for kind, type_ in _OF_PYTHON.items()}
_NO_KEYS = frozenset({ColumnType.REAL, ColumnType.DECIMAL, ColumnType.PACKED})


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    name: str
    type: ColumnType

    def problem(self, value: Any) -> str | None:
        """Return why the column does not take a value, or None."""
        if self.type is ColumnType.PACKED:
            return None
        expected = PYTHON[self.type]
        if value is None:
            return f"is no {expected.__name__}; leave it out, or call remove() with the key"
        if type(value) is not expected:
            return f"is a {type(value).__name__}, expected exactly {expected.__name__}; convert it before it is stored"
        look = _PROBLEMS.get(self.type)
        return None if look is None else look(value)


def _problem_of_int(value: int) -> str | None:
    return None if -INT_MAX <= value <= INT_MAX else "is not within 64 bits; declare the column as object or Decimal"


def _problem_of_float(value: float) -> str | None:
    return None if math.isfinite(value) else "is not finite, which not every database holds; leave it out, or use None"


def _problem_of_decimal(value: Decimal) -> str | None:
    return None if value.is_finite() else "is not finite, which not every database holds"


def _problem_of_text(value: str) -> str | None:
    if "\0" in value:
        return "holds the character NUL, which not every database takes; declare the column as bytes"
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return "is no valid Unicode (a lone surrogate); declare the column as bytes"
    return None


def _problem_of_timestamp(value: datetime) -> str | None:
    return "has no time zone; give it one: datetime.now(timezone.utc)" if value.utcoffset() is None else None


_PROBLEMS: Mapping[ColumnType, Callable[[Any], str | None]] = {
    ColumnType.INTEGER: _problem_of_int,
    ColumnType.REAL: _problem_of_float,
    ColumnType.DECIMAL: _problem_of_decimal,
    ColumnType.TEXT: _problem_of_text,
    ColumnType.TIMESTAMP: _problem_of_timestamp,
}


def check_name(name: object, what: str) -> str:
    """Return a name that every database takes; raise `InvalidStore`."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > NAME_CHARS_MAX:
        raise InvalidStore(
            f"{what} is named {shown(name)}, expected letters, digits and underscores, not a digit first, at most "
            f"{NAME_CHARS_MAX} in all"
        )
    return name


def columns_of(declared: Mapping[str, type], what: str, keys: bool = False) -> tuple[Column, ...]:
    """Return the columns that a map declares as name → Python type; raise `InvalidStore`."""
    if not isinstance(declared, Mapping) or not declared:
        raise InvalidStore(f'{what} is {shown(declared)}, expected at least one column, as {{"word": str}}')
    columns = []
    for name, python in declared.items():
        check_name(name, f"a column of {what}")
        found = _OF_PYTHON.get(python) if isinstance(python, type) else None
        if found is None or (keys and found in _NO_KEYS):
            known = [kind.value for kind in ColumnType if not (keys and kind in _NO_KEYS)]
            raise InvalidStore(
                f"column {name!r} of {what} is declared as {shown(python)}, expected one of {', '.join(known)}"
                f"{did_you_mean(getattr(python, '__name__', python), known)}"
                + ("" if keys else "; object holds whatever the topology's serialization takes, as msgpack")
            )
        columns.append(Column(name, found))
    return tuple(columns)


def taken(columns: Sequence[Column], rows: Sequence[Sequence[Any]], where: str, nullable: bool) -> list[Sequence[Any]]:
    """Return the values of rows, column by column, as a map keeps them; timestamps are in UTC.

    Args:
        rows: column by column.
        where: table and part, for messages.
        nullable: whether None stands for an absent value.

    Raises:
        RefusedValue: a value is not of its column's type.
    """
    for column, values in zip(columns, rows, strict=True):
        if _clearly_right(column, values):
            continue
        for i, value in enumerate(values):
            problem = None if nullable and value is None else column.problem(value)
            if problem is not None:
                row = tuple(each[i] for each in rows)
                raise RefusedValue(
                    f"{where}: column {column.name!r} does not take {shown(value)}, which {problem} (row {shown(row)})"
                )
    return [
        [None if value is None else in_utc(value) for value in values]
        if column.type is ColumnType.TIMESTAMP
        else values
        for column, values in zip(columns, rows, strict=True)
    ]


def _clearly_right(column: Column, values: Sequence[Any]) -> bool:
    """Return whether a look at all values together shows that the column takes them: fast, for the usual types."""
    if column.type is ColumnType.PACKED:
        return True
    if set(map(type, values)) != {PYTHON[column.type]}:
        return not values
    if column.type is ColumnType.INTEGER:
        return bool(min(values) >= -INT_MAX and max(values) <= INT_MAX)
    if column.type is ColumnType.TEXT:
        text = "\n".join(values)
        return text.isascii() and "\0" not in text
    return column.type not in _PROBLEMS


def in_utc(value: datetime) -> datetime:
    """Return the same point in time, as all stores give it back."""
    return value.astimezone(UTC)
