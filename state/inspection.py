"""Inspection: what a store holds, read at one moment by one who changes nothing and waits for nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from stormline.state.columns import Column, ColumnType, in_utc
from stormline.state.connection import StoreConnection
from stormline.state.errors import CorruptRow, NoSuchKey, NoSuchTable, RefusedValue, StoreFailed, StoreUnavailable
from stormline.state.fence import Fence
from stormline.state.store import Store
from stormline.state.table import Key, Row, Table
from stormline.state.table_claim import MAPS
from stormline.topology.errors import did_you_mean


@dataclass(frozen=True, slots=True)
class HeldTable:
    """A map's table, and whose it is."""

    table: Table
    topology: str


class Inspection:
    """One look at a store: all that is asked of it is of the same moment, except on Redis."""

    def __init__(self, store: Store, connection: StoreConnection) -> None:
        self._store = store
        self._connection = connection

    @classmethod
    @contextmanager
    def of(cls, store: Store) -> Iterator[Inspection]:
        """Look at a store; nothing is made there.

        Raises:
            StoreFailed: the database is away, or is none.
        """
        try:
            connection = store.connect(reads=True)
            try:
                connection.begin(reads=True)
                yield cls(store, connection)
                connection.rollback()
            finally:
                connection.close()
        except StoreUnavailable as error:  # nothing is replayed here
            raise StoreFailed(error.why) from error

    def fences(self, topology: str) -> Mapping[str, Fence]:
        """Return what was stored last of a topology, by scope."""
        return self._connection.fences(topology) if topology in self.topologies() else {}

    def topologies(self) -> list[str]:
        """Return the topologies of which something is stored."""
        return self._connection.topologies()

    def tables(self) -> dict[str, HeldTable]:
        """Return the tables of maps by name."""
        found = {}
        for name, (topology, declared) in self._connection.claims().items():
            try:
                found[name] = HeldTable(Table.of_description(name, declared), topology)
            except ValueError as error:
                raise CorruptRow(
                    f"table {MAPS!r} of {self._store} says of table {name!r} that its map is {declared!r}, which is no "
                    "map's declaration; correct the row, or remove it"
                ) from error
        return found

    def table(self, name: str) -> HeldTable:
        """Return a map's table; raise `NoSuchTable`."""
        tables = self.tables()
        if name not in tables:
            there = f"it holds {list(tables)}" if tables else "it holds no map's table"
            raise NoSuchTable(f"{self._store} has no table {name!r}; {there}{did_you_mean(name, tables)}")
        return tables[name]

    def count(self, table: Table) -> int:
        """Return the number of rows."""
        return self._connection.count(table)

    def rows(self, table: Table, rows_max: int | None = None) -> dict[Key, Row]:
        """Return the rows of a table, or the first ones by their key."""
        return self._connection.read_all(table, rows_max)

    def row(self, table: Table, texts: Sequence[str]) -> tuple[Key, Row]:
        """Return the row of the key that texts give, one a column.

        Raises:
            RefusedValue: they are no key of this table.
            NoSuchKey: it holds no such row.
        """
        key = key_of(table, texts)
        found = self._connection.read(table, [key])
        if key not in found:
            shown = key[0] if len(key) == 1 else key
            raise NoSuchKey(f"table {table.name!r} of {self._store} holds nothing under key {shown!r}")
        return key, found[key]


def key_of(table: Table, texts: Sequence[str]) -> Key:
    """Return the key that texts give, one a column; raise `RefusedValue`."""
    columns = ", ".join(f"{column.name} {column.type.value}" for column in table.key)
    if len(texts) != len(table.key):
        raise RefusedValue(
            f"table {table.name!r} is given a key of {len(texts)} values, expected {len(table.key)}: {columns}"
        )
    return tuple(_value(table, column, text) for column, text in zip(table.key, texts, strict=True))


def _value(table: Table, column: Column, text: str) -> Any:
    try:
        value = _OF_TEXT[column.type](text)
    except (ValueError, KeyError):
        problem: str | None = f"is no {column.type.value}"
    else:
        problem = column.problem(value)
        if problem is None:
            return in_utc(value) if isinstance(value, datetime) else value
    raise RefusedValue(
        f"table {table.name!r} has the key column {column.name!r} of {column.type.value}, and {text!r} {problem}; "
        f"give it as {_SHAPES[column.type]}"
    )


_OF_TEXT: Mapping[ColumnType, Callable[[str], Any]] = {
    ColumnType.INTEGER: int,
    ColumnType.TEXT: str,
    ColumnType.BYTES: bytes.fromhex,
    ColumnType.BOOLEAN: {"true": True, "false": False}.__getitem__,
    ColumnType.TIMESTAMP: datetime.fromisoformat,
    ColumnType.DATE: date.fromisoformat,
}
_SHAPES = {
    ColumnType.INTEGER: "a number",
    ColumnType.TEXT: "text",
    ColumnType.BYTES: "hexadecimal digits",
    ColumnType.BOOLEAN: "true or false",
    ColumnType.TIMESTAMP: "2013-01-31T12:00:00+00:00",
    ColumnType.DATE: "2013-01-31",
}
