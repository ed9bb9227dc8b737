"""Which of many rows a database refuses: its message says why, and not which."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stormline.state.connection import StoreConnection
from stormline.state.errors import RowRefused, StoreFailed
from stormline.state.table import Key, Row, Table


def write_rows(connection: StoreConnection, table: Table, rows: Sequence[tuple[Key, Row]]) -> None:
    """Insert or replace rows.

    Raises:
        StoreFailed: the database refuses one of them; the message names its key, and what was done is undone.
    """
    try:
        connection.write(table, rows)
    except RowRefused as refused:

        def takes(first: int, end: int) -> bool:
            connection.rollback()
            connection.begin()
            try:
                connection.write(table, rows[first:end])
            except RowRefused:
                return False
            return True

        raise StoreFailed(
            f"{refused}; it is the row of key {_key(rows, takes)}: correct what the bolt stores there, or change the "
            "table"
        ) from refused


def _key(rows: Sequence[tuple[Key, Row]], takes: Callable[[int, int], bool]) -> str:
    try:
        return repr(rows[first_refused(len(rows), takes)][0])
    except StoreFailed:  # the table itself was this transaction's
        return "(nobody knows which)"


def first_refused(count: int, takes: Callable[[int, int], bool]) -> int:
    """Return the number of the first row of `count` that is refused by itself, or in front of those after it.

    Args:
        takes: whether the database takes the rows from one number to before another.
    """
    first, end = 0, count
    while end - first > 1:
        middle = (first + end) // 2
        if takes(first, middle):
            first = middle
        else:
            end = middle
    return first
