"""About how many bytes rows take: they wait in lists and travel in messages, which must be bounded in bytes, too."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from sys import getsizeof

from stormline.runtime.tuples.columns import Row

SEGMENT_BYTES = 1 << 22
"""Rows that wait together, and rows that are packed together, take about so much, or one row alone takes more."""

SEGMENT_BYTES_MAX = 1 << 24
"""A segment of more is cut in halves, unless it is one row: estimates look at few rows, and at no more than the row."""

LOOKED_AT = 16


def rows_within(row: Row, most: int) -> int:
    """Return how many rows like this one may be together: at least one, at most `most`."""
    size = sum(map(getsizeof, row))
    return most if size * most <= SEGMENT_BYTES else max(1, SEGMENT_BYTES // size)


def in_parts(rows: list[Row]) -> Sequence[list[Row]]:
    """Return rows in parts that may be packed together, as far as some of them tell; mostly that is one part."""
    if len(rows) == 1:
        return (rows,)
    some = rows[:: len(rows) // LOOKED_AT + 1]
    size = sum(map(getsizeof, chain.from_iterable(some))) * len(rows) // len(some)
    parts = min(len(rows), size // SEGMENT_BYTES + 1)
    if parts == 1:
        return (rows,)
    most = -(-len(rows) // parts)
    return [rows[start : start + most] for start in range(0, len(rows), most)]
