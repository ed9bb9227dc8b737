"""PackedColumns: values that have no column type, as msgpack with registered types; nothing is ever unpickled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stormline.state.columns import ColumnType
from stormline.state.errors import CorruptRow, RefusedValue
from stormline.state.table import Key, Table, Values
from stormline.topology.errors import CorruptData, SerializationError

if TYPE_CHECKING:
    from stormline.topology.serialization import Registry


class PackedColumns:
    """The columns of one table that hold msgpack; falsy where there are none."""

    def __init__(self, table: Table, registry: Registry) -> None:
        self._table = table
        self._registry = registry
        self._packed = [column.type is ColumnType.PACKED for column in table.value]
        self._any = any(self._packed)

    def __bool__(self) -> bool:
        return self._any

    def packed(self, key: Key, values: Values) -> Values:
        """Return values as the database holds them; raise `RefusedValue`."""
        try:
            return tuple(
                self._registry.pack(value) if packed and value is not None else value
                for value, packed in zip(values, self._packed, strict=True)
            )
        except SerializationError as error:
            raise RefusedValue(f"table {self._table.name!r} cannot hold the value of key {key}: {error}") from error

    def unpacked(self, key: Key, values: Values) -> Values:
        """Return values as the map gives them, made anew: the caller may change them. Raise `CorruptRow`."""
        try:
            return tuple(
                self._registry.unpack(value) if packed and value is not None else value
                for value, packed in zip(values, self._packed, strict=True)
            )
        except CorruptData as error:
            raise CorruptRow(
                f"table {self._table.name!r} holds a value of key {key} that the topology cannot read: {error}; "
                "correct the row, or remove it"
            ) from error
