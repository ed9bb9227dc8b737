"""Rows of a store as a terminal and as JSON show them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from stormline.state.columns import ColumnType
from stormline.state.errors import CorruptRow
from stormline.state.packed_columns import PackedColumns
from stormline.state.table import PREV, TXID, Key, Kind, Row, Table, Values
from stormline.topology.serialization import PLAIN
from stormline.topology.texts import printable

CHARS_MAX = 40
WHOLE = 1 << 30


def columns_of(table: Table, key: Key, row: Row) -> dict[str, Any]:
    """Return the values of a row by column: key, value, txid, and what an opaque map held before."""
    found = dict(zip([column.name for column in table.key], key, strict=True))
    found |= _values(table, key, row.values)
    if table.kind is not Kind.NON_TRANSACTIONAL:
        found[TXID] = row.txid
    if row.prev is not None and row.prev_txid is not None:
        found |= {PREV + name: value for name, value in _values(table, key, row.prev).items()}
        found[PREV + TXID] = row.prev_txid
    return found


def _values(table: Table, key: Key, values: Values) -> dict[str, Any]:
    names = [column.name for column in table.value]
    try:
        return dict(zip(names, PackedColumns(table, PLAIN).unpacked(key, values), strict=True))
    except CorruptRow:  # of a class that only the topology registers
        packed = [column.type is ColumnType.PACKED for column in table.value]
        return {
            name: f"msgpack {value.hex()}" if is_packed and value is not None else value
            for name, value, is_packed in zip(names, values, packed, strict=True)
        }


def as_json(value: Any) -> Any:
    """Return a value as JSON has it: times as ISO 8601, bytes as hexadecimal digits, a Decimal as text."""
    if isinstance(value, dict):
        return {str(as_json(key)): as_json(held) for key, held in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(part) for part in value]
    if isinstance(value, (set, frozenset)):
        return sorted((as_json(part) for part in value), key=repr)
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)


def as_text(value: Any, chars_max: int = WHOLE) -> str:
    """Return a value as one line on a terminal, cut where it is longer."""
    if value is None:
        return "–"
    plain = as_json(value)
    text = printable(plain if isinstance(plain, str) else repr(plain)).replace("\n", "⏎")
    return text if len(text) <= chars_max else f"{text[: chars_max - 1]}…"


def table_text(header: Sequence[str], rows: Iterable[Sequence[Any]], chars_max: int = CHARS_MAX) -> str:
    """Return rows under a header, in columns: numbers to the right, all else to the left."""
    given = [list(row) for row in rows]
    right = [bool(given) and all(_is_number(row[i]) for row in given) for i in range(len(header))]
    cells = [list(header), *([as_text(value, chars_max) for value in row] for row in given)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    lines = (
        "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in cells
    )
    return "\n".join(lines)


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float, Decimal)) and not isinstance(value, bool))
