"""When rows may go to PostgreSQL in binary, which takes both sides half the time that text does: pure.

As text a value is given to the column's type, which takes it or refuses it. In binary psycopg makes the column's type
of it, and raises where it cannot: then all go as text, and the server decides. But of a number that is too large for an
integer psycopg sends the last bits, and True as 1, without a word: those are looked at before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

ROWS_MIN = 1000
"""Fewer rows go as text: to look at the table's types costs two round trips."""

CANNOT = (TypeError, ValueError, ArithmeticError, AttributeError)
"""What psycopg raises of a value of which it cannot make the column's type."""

_KNOWN_AS: Mapping[str, str] = {
    "bigint": "int8",
    "integer": "int4",
    "smallint": "int2",
    "double precision": "float8",
    "text": "text",
    "character varying": "varchar",
    "boolean": "bool",
    "bytea": "bytea",
    "date": "date",
    "uuid": "uuid",
}
"""What psycopg calls a column's type."""
_BITS = {"int4": 31, "int2": 15}
_NUMBERS = frozenset({"int8", "int4", "int2", "float8"})


def binary_types(columns: Sequence[str], declared: Mapping[str, str]) -> list[str] | None:
    """Return the types in which values of these columns may be sent, by psycopg's names; None: they must go as text.

    Args:
        columns: names of columns.
        declared: the type of each column of the table, as PostgreSQL writes it.
    """
    types = [_KNOWN_AS.get(declared.get(name, "").partition("(")[0], "") for name in columns]
    return types if all(types) else None


def fit(types: Sequence[str], rows: Sequence[Sequence[Any]]) -> bool:
    """Return whether psycopg sends all numbers of these rows as they are, or raises."""
    for i, kind in enumerate(types):
        if kind in _NUMBERS and bool in set(map(type, map(itemgetter(i), rows))):
            return False
        if kind in _BITS:
            numbers = [value for value in map(itemgetter(i), rows) if isinstance(value, int)]
            limit = 1 << _BITS[kind]
            if numbers and not (-limit <= min(numbers) and max(numbers) < limit):
                return False
    return True
