"""SQLValues: how one database holds the values of each column type, and what is checked when they come back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from stormline.state.columns import PYTHON, Column, ColumnType
from stormline.state.sql_text import PREV_TXID
from stormline.state.table import TXID, Key, Kind, Row, RowColumns, Table
from stormline.topology.errors import shown

_TXID = Column(TXID, ColumnType.INTEGER)


class SQLValues:
    """Values on their way.

    Args:
        writes: what makes a value into what the driver takes, where that is another.
        reads: the type that the driver gives, and what makes it into the value, where that is another.
    """

    def __init__(
        self,
        writes: Mapping[ColumnType, Callable[[Any], Any]],
        reads: Mapping[ColumnType, tuple[type, Callable[[Any], Any]]],
    ) -> None:
        self._writes = writes
        self._reads = reads

    def written(self, columns: Sequence[Column], rows: Sequence[tuple[Any, ...]]) -> Sequence[tuple[Any, ...]]:
        """Return rows as the database takes them."""
        writes = [self._writes.get(column.type) for column in columns]
        if not any(writes):
            return rows
        return [
            tuple(
                value if write is None or value is None else write(value)
                for write, value in zip(writes, row, strict=True)
            )
            for row in rows
        ]

    def sorted_columns(self, table: Table, rows: RowColumns) -> RowColumns:
        """Return rows by column as the database takes them, in the order of their keys: it writes them faster."""
        columns = [*table.key, *table.value, _TXID, *table.value, _TXID][: len(rows)]
        written = [self._column_written(column, values) for column, values in zip(columns, rows, strict=True)]
        keys = written[: len(table.key)]
        order = _order(keys[0] if len(keys) == 1 else list(zip(*keys, strict=True)))
        return written if order is None else [itemgetter(*order)(values) for values in written]

    def _column_written(self, column: Column, values: Sequence[Any]) -> Sequence[Any]:
        write = self._writes.get(column.type)
        return values if write is None else [None if value is None else write(value) for value in values]

    def key_read(self, table: Table) -> Callable[[tuple[Any, ...]], Key]:
        """Return what makes keys of the columns of the key."""
        reads = [self._reads.get(column.type) for column in table.key]
        if not any(reads):
            return lambda found: found
        return lambda found: tuple(read[1](part) if read else part for part, read in zip(found, reads, strict=True))

    def rows_read(self, table: Table, found: Sequence[tuple[Any, ...]]) -> list[Row] | None:
        """Return rows that need no change, all looked at together; None where one has to look at each."""
        width = len(table.value)
        if table.kind is Kind.OPAQUE or any(self._reads.get(column.type) for column in table.value) or not found:
            return None
        for column, values in zip(table.value, zip(*found, strict=True), strict=False):
            if set(map(type, values)) != {bytes if column.type is ColumnType.PACKED else PYTHON[column.type]}:
                return None
        if table.kind is Kind.NON_TRANSACTIONAL:
            return [Row(one) for one in found]
        txids = [one[width] for one in found]
        if set(map(type, txids)) != {int}:
            return None
        return [Row(one[:width], txid) for one, txid in zip(found, txids, strict=True)]

    def row_read(self, table: Table) -> Callable[[tuple[Any, ...]], Row]:
        """Return what makes rows of the columns after the key; it raises ValueError where no map wrote them."""
        width = len(table.value)
        opaque = table.kind is Kind.OPAQUE
        reads = [self._reads.get(column.type) for column in table.value]
        held = [
            read[0] if read else bytes if column.type is ColumnType.PACKED else PYTHON[column.type]
            for column, read in zip(table.value, reads, strict=True)
        ]
        plain = not any(reads)

        def values_of(found: tuple[Any, ...]) -> tuple[Any, ...]:
            for column, value, kind in zip(table.value, found, held, strict=True):
                if type(value) is not kind and value is not None:
                    raise ValueError(f"column {column.name!r} is {shown(value)}, expected {column.type.value}")
            if plain:
                return found
            return tuple(
                value if value is None or read is None else read[1](value)
                for value, read in zip(found, reads, strict=True)
            )

        def row_of(found: tuple[Any, ...]) -> Row:
            values = values_of(found[:width])
            if width == 1 and values[0] is None:
                raise ValueError(f"column {table.value[0].name!r} is empty")
            if len(found) == width:
                return Row(values)
            txid = found[width]
            if type(txid) is not int:
                raise ValueError(f"column {TXID!r} is {shown(txid)}, expected the number of a transaction")
            if not opaque or found[-1] is None:
                return Row(values, txid)
            if type(found[-1]) is not int:
                raise ValueError(f"column {PREV_TXID!r} is {shown(found[-1])}, expected the number of a transaction")
            return Row(values, txid, values_of(found[width + 1 : -1]), found[-1])

        return row_of


def _order(keys: Sequence[Any]) -> list[int] | None:
    """Return the places of keys in their order; None where that is the order in which they are."""
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return None if order == list(range(len(keys))) else order
