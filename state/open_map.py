"""OpenMap and OpenValue: a map, and one value of it, in the commit phase at hand."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any

from stormline.state.columns import ColumnType, taken
from stormline.state.errors import RefusedValue
from stormline.state.store_transaction import StoreTransaction
from stormline.state.table import Key, Kind, RowColumns, Table, Values, by_column
from stormline.state.table_transaction import TableTransaction
from stormline.topology.errors import shown


class OpenMap:
    """A map in one commit phase. What it stores is there when the transaction is, with all else that it stores.

    `stored`: the database holds this transaction already. What is stored then is ignored, and what is got is what the
    transaction left; an opaque map is as it was before, and stores anew. `StateMap.begin_commit` makes it.

    Args:
        spec (Table): What the map declares.
        transaction (StoreTransaction): That of the commit phase.
        rows (TableTransaction): What it does to the map's table.
    """

    def __init__(self, spec: Table, transaction: StoreTransaction, rows: TableTransaction) -> None:
        self._spec = spec
        self._transaction = transaction
        self._rows = rows
        self._one_key = len(spec.key) == 1
        self._one_value = len(spec.value) == 1

    @property
    def stored(self) -> bool:
        """Whether the database holds this transaction already."""
        return self._transaction.stored

    def get(self, key: Any) -> Any:
        """Return what a key holds, with what this transaction has stored; None where it holds nothing.

        Args:
            key (Any): The value of its column, a tuple where it has several.

        Raises:
            RefusedValue: A column does not take a key or a value.
        """
        return self.multi_get([key])[0]

    def multi_get(self, keys: Collection[Any]) -> list[Any]:
        """Return what each key holds, in their order.

        Args:
            keys (Collection[Any]): Of each the value of its column, a tuple where it has several.

        Raises:
            RefusedValue: A column does not take a key or a value.
        """
        return self._got(keys, self._rows.get)

    def multi_get_before(self, keys: Collection[Any]) -> list[Any]:
        """Return what each key of an opaque map held before this transaction, in every attempt the same.

        Args:
            keys (Collection[Any]): Of each the value of its column, a tuple where it has several.

        Raises:
            RefusedValue: The map is not opaque, and does not know; or a column does not take a key.
        """
        if self._spec.kind is not Kind.OPAQUE:
            raise RefusedValue(
                f"table {self._spec.name!r} is that of a {self._spec.kind.value} map, which does not know what a key "
                "held before; declare an OpaqueMap"
            )
        return self._got(keys, self._rows.before)

    def put(self, key: Any, value: Any) -> None:
        """Store a value.

        Args:
            key (Any): The value of its column, a tuple where it has several.
            value (Any): The value of its column, a tuple where it has several.

        Raises:
            RefusedValue: A column does not take a key or a value.
        """
        self.multi_put({key: value})

    def multi_put(self, values: Mapping[Any, Any]) -> None:
        """Store values.

        Args:
            values (Mapping[Any, Any]): By key.

        Raises:
            RefusedValue: A column does not take a key or a value.
        """
        self._check_mapping(values)
        keys = self._key_columns(values)
        new = self._value_columns(list(values.values()))
        with self._transaction.alone() as connection:
            self._rows.put_columns(connection, keys, new)

    def remove(self, keys: Collection[Any]) -> None:
        """Remove keys; those that hold nothing are no error.

        Args:
            keys (Collection[Any]): Of each the value of its column, a tuple where it has several.

        Raises:
            RefusedValue: A column does not take a key or a value.
        """
        rows = self._keys(keys)
        with self._transaction.alone() as connection:
            self._rows.get(connection, rows)
            self._rows.put(dict.fromkeys(rows))

    def update(self, key: Any, change: Callable[[Any], Any]) -> Any:
        """Store `change(what the key holds, or None)`.

        Args:
            key (Any): The value of its column, a tuple where it has several.
            change (Callable[[Any], Any]): Returns the new value; it may be called again in a replay.

        Returns:
            What the key holds then; see `multi_update`.

        Raises:
            RefusedValue: A column does not take a key or a value.
        """
        return self.multi_update({key: None}, lambda old, _: change(old))[key]

    def multi_update(self, changes: Mapping[Any, Any], combine: Callable[[Any, Any], Any]) -> dict[Any, Any]:
        """Store `combine(what the key holds, or None, change)` for each key.

        Args:
            changes (Mapping[Any, Any]): The change of each key.
            combine (Callable[[Any, Any], Any]): Returns the new value; it may be called again in a replay.

        Returns:
            What each key holds then. In a replay of what is stored already nothing is combined, and it is the same.

        Raises:
            RefusedValue: A column does not take a key or a value.
        """
        self._check_mapping(changes)
        rows = self._keys(changes)
        with self._transaction.lock:  # no other task may store in between
            with self._transaction.alone() as connection:
                held = self._rows.get(connection, rows)
            is_kept = self._rows.is_kept
            now = self._values([held[row] for row in rows])
            new: dict[Key, Any] = {}
            for i, (row, change) in enumerate(zip(rows, changes.values(), strict=True)):
                if not is_kept(row):
                    now[i] = new[row] = combine(now[i], change)
            values = self._value_columns(list(new.values()))
            self._rows.put(dict(zip(new, zip(*values, strict=True), strict=True)))
        return dict(zip(changes, now, strict=True))

    def increment(self, by: Mapping[Any, Any]) -> dict[Any, Any]:
        """Add to what each key holds, a tuple column by column.

        Args:
            by (Mapping[Any, Any]): What to add, by key.

        Returns:
            What each key holds then, in a replay of what is stored already as well.

        Raises:
            RefusedValue: A column does not take a key or a value.
        """
        return self.multi_update(by, _sum if self._one_value else _sums)

    # ------------------------------------------------------------------------------------ keys and values

    def _got(self, keys: Collection[Any], get: Callable[..., dict[Key, Values | None]]) -> list[Any]:
        rows = self._keys(keys)
        with self._transaction.alone() as connection:
            held = get(connection, rows)
            return self._values([held[row] for row in rows])

    def _values(self, held: Sequence[Values | None]) -> list[Any]:
        """Return what keys hold as users see it."""
        if self._one_value:
            return [None if values is None else values[0] for values in held]
        return list(held)

    def _check_mapping(self, given: Any) -> None:
        if not isinstance(given, Mapping):
            raise RefusedValue(
                f"table {self._spec.name!r} is given {shown(given)}, expected a mapping, key by key; make it a dict"
            )

    def _check_collection(self, keys: Any) -> None:
        if isinstance(keys, (str, bytes)) or not isinstance(keys, Iterable):  # a text is one key, not its letters
            raise RefusedValue(
                f"table {self._spec.name!r} is given {shown(keys)} as keys, expected a collection of them: "
                f"[{shown(keys)}]"
            )

    def _keys(self, keys: Collection[Any]) -> list[Key]:
        self._check_collection(keys)
        return list(zip(*self._key_columns(keys), strict=True))

    def _key_columns(self, keys: Collection[Any]) -> RowColumns:
        columns = self._spec.key
        given = [list(keys)] if self._one_key else self._several(keys, len(columns))
        return taken(columns, given, f"the key of table {self._spec.name!r}", nullable=False)

    def _value_columns(self, new: Collection[Any]) -> RowColumns:
        columns = self._spec.value
        given = [list(new)] if self._one_value else self._several(new, len(columns))
        if self._one_value and columns[0].type is ColumnType.PACKED and any(value is None for value in given[0]):
            raise RefusedValue(f"table {self._spec.name!r} cannot store None as a value; call remove() with the keys")
        return taken(columns, given, f"the value of table {self._spec.name!r}", nullable=not self._one_value)

    def _several(self, rows: Collection[Any], width: int) -> list[list[Any]]:
        """Return rows of several columns by column."""
        for row in rows:
            if not isinstance(row, tuple) or len(row) != width:
                raise RefusedValue(
                    f"table {self._spec.name!r} is given {shown(row)}, expected a tuple of {width}: "
                    f"{self._spec.described()}"
                )
        return by_column(list(rows), width)


def _sum(old: Any, by: Any) -> Any:
    return by if old is None else old + by


def _sums(old: Any, by: Any) -> Any:
    if old is None or not isinstance(by, tuple) or len(old) != len(by):
        return by  # which is stored as it is, or refused
    return tuple(_sum(a, b) for a, b in zip(old, by, strict=True))


class OpenValue:
    """One value of a map in one commit phase; `SnapshottableMap.begin_commit` makes it.

    Args:
        opened (OpenMap): The map.
        key (Hashable): The key of its row.
    """

    def __init__(self, opened: OpenMap, key: Hashable) -> None:
        self._map = opened
        self._key = key

    @property
    def stored(self) -> bool:
        """Whether the database holds this transaction already."""
        return self._map.stored

    def get(self) -> Any:
        """Return it; None where there is none."""
        return self._map.get(self._key)

    def set(self, value: Any) -> None:
        """Store it.

        Args:
            value (Any): The value of the map's column, a tuple where it has several.

        Raises:
            RefusedValue: A column does not take a key or a value.
        """
        self._map.put(self._key, value)

    def update(self, change: Callable[[Any], Any]) -> Any:
        """Store `change(the value, or None)`.

        Args:
            change (Callable[[Any], Any]): Returns the new value; it may be called again in a replay.

        Returns:
            What it is then, in a replay of what is stored already as well.

        Raises:
            RefusedValue: A column does not take a key or a value.
        """
        return self._map.update(self._key, change)

    def increment(self, by: Any) -> Any:
        """Add to it.

        Args:
            by (Any): What to add, a tuple where the map has several columns.

        Returns:
            What it is then, in a replay of what is stored already as well.

        Raises:
            RefusedValue: A column does not take a key or a value.
        """
        return self._map.increment({self._key: by})[self._key]

    def remove(self) -> None:
        """Remove it."""
        self._map.remove([self._key])
