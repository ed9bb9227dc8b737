"""Table: where a map stores, as every store understands it; and a row of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from stormline.state.columns import Column

TXID = "txid"
PREV = "prev_"
RESERVED = "stormline_"
REMOVED = "_removed"

Key = tuple[Any, ...]
Values = tuple[Any, ...]
RowColumns = Sequence[Sequence[Any]]
"""Rows, column by column: those of the key, of the value, and what the map's kind adds, in the order of the table."""


class Kind(Enum):
    """What a map keeps beside its values."""

    TRANSACTIONAL = "transactional"
    """The txid that stored them."""
    OPAQUE = "opaque"
    """The txid, the values before, and the txid that stored those."""
    NON_TRANSACTIONAL = "non-transactional"
    """Nothing."""


def by_column(rows: Sequence[tuple[Any, ...]], width: int) -> list[list[Any]]:
    """Return the columns of rows; as many as the rows are wide, also where there are no rows."""
    return [[row[i] for row in rows] for i in range(width)]


class Row(NamedTuple):
    """The values of one key. What its map's kind does not keep is None."""

    values: Values
    txid: int | None = None
    prev: Values | None = None
    prev_txid: int | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A map's table: columns of the key, of the value, and those of its kind."""

    name: str
    kind: Kind
    key: tuple[Column, ...]
    value: tuple[Column, ...]

    def described(self) -> str:
        """Return the declaration as one line; two maps on one table have the same."""
        key = ", ".join(f"{column.name} {column.type.value}" for column in self.key)
        value = ", ".join(f"{column.name} {column.type.value}" for column in self.value)
        return f"{self.kind.value} map ({key}) -> ({value})"


def rows_by_column(table: Table, rows: Mapping[Key, Row]) -> RowColumns:
    """Return all columns of rows, in the order of the table."""
    width = len(table.value)
    held = list(rows.values())
    columns = [*by_column(list(rows), len(table.key)), *by_column([row.values for row in held], width)]
    if table.kind is Kind.NON_TRANSACTIONAL:
        return columns
    columns.append([row.txid for row in held])
    if table.kind is Kind.TRANSACTIONAL:
        return columns
    none = (None,) * width
    return [*columns, *by_column([row.prev or none for row in held], width), [row.prev_txid for row in held]]
