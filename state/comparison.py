"""What the rows of two tables of one map tell apart: what is stored, and what it should be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stormline.state.columns import ColumnType
from stormline.state.errors import CorruptRow
from stormline.state.packed_columns import PackedColumns
from stormline.state.table import Key, Row, Table, Values

if TYPE_CHECKING:
    from stormline.topology.serialization import Registry

FLOAT_TOLERANCE = 1e-9
"""Relative: floats that are added up in another order come out a little different."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that is not what it should be. A key, or values, of one column is that column's; None: there is no row."""

    key: Any
    stored: Any
    recomputed: Any


class Comparison:
    """Compares the rows of one map's table."""

    def __init__(self, table: Table, registry: Registry) -> None:
        self._types = [column.type for column in table.value]
        self._packed = PackedColumns(table, registry)

    def differences(self, stored: Mapping[Key, Row], recomputed: Mapping[Key, Row]) -> list[Difference]:
        """Return the rows whose values differ, and those that only one side has, by key."""
        found = []
        for key in sorted(stored.keys() | recomputed.keys(), key=repr):
            one, other = stored.get(key), recomputed.get(key)
            if one is not None and other is not None and one.values == other.values:
                continue
            ours, theirs = self._shown(key, one), self._shown(key, other)
            if one is None or other is None or not self._same(ours, theirs):
                found.append(Difference(_single(key), _single(ours), _single(theirs)))
        return found

    def _shown(self, key: Key, row: Row | None) -> Any:
        if row is None:
            return None
        try:
            return self._packed.unpacked(key, row.values) if self._packed else row.values
        except CorruptRow as error:
            return (f"unreadable: {error}",)

    def _same(self, ours: Values, theirs: Values) -> bool:
        return len(ours) == len(theirs) and all(
            one == other
            or (
                kind is ColumnType.REAL
                and None not in (one, other)
                and math.isclose(one, other, rel_tol=FLOAT_TOLERANCE, abs_tol=FLOAT_TOLERANCE)
            )
            for kind, one, other in zip(self._types, ours, theirs, strict=True)
        )


def _single(part: Any) -> Any:
    return part[0] if isinstance(part, tuple) and len(part) == 1 else part
