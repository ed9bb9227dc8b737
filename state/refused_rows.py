"""Which of many rows a database refuses: its message says why, and not which."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from stormline.state.connection import StoreConnection
from stormline.state.errors import RowRefused, StoreFailed
from stormline.state.table import RowColumns, Table

Result = TypeVar("Result")


def write_rows(connection: StoreConnection, table: Table, columns: RowColumns) -> None:
    """Insert or replace rows.

    Raises:
        StoreFailed: the database refuses one of them; the message names its key, and what was done is undone.
    """
    _named(connection, table, columns, connection.write)


def write_unread_rows(connection: StoreConnection, table: Table, columns: RowColumns) -> bool:
    """Insert or replace rows of which nobody knows what is there, as `write_unread` of a connection; raise as above."""
    return _named(connection, table, columns, connection.write_unread)


def _named(
    connection: StoreConnection, table: Table, columns: RowColumns, write: Callable[[Table, RowColumns], Result]
) -> Result:
    try:
        return write(table, columns)
    except RowRefused as refused:

        def takes(first: int, end: int) -> bool:
            connection.rollback()
            connection.begin()
            try:
                connection.write(table, [values[first:end] for values in columns])
            except RowRefused:
                return False
            return True

        raise StoreFailed(
            f"{refused}; it is the row of key {_key(table, columns, takes)}: correct what the bolt stores there, or "
            "change the table"
        ) from refused


def _key(table: Table, columns: RowColumns, takes: Callable[[int, int], bool]) -> str:
    try:
        refused = first_refused(len(columns[0]), takes)
    except StoreFailed:  # the table itself was this transaction's
        return "(nobody knows which)"
    return repr(tuple(values[refused] for values in columns[: len(table.key)]))


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
