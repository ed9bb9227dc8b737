"""A checksum of record batches: of their values, not of how rows were cut into batches, nor of how wide a type is."""

from __future__ import annotations

import zlib
from typing import Any

from stormline.runtime.tuples.canonical_form import canonical
from stormline.topology.arrow import pyarrow_for
from stormline.topology.columns import values_of
from stormline.topology.serialization import Registry


class ColumnChecksum:
    """Runs over the values of one column, batch after batch: which rows are null, what kinds the others are, and they.

    A kind is one of Python's types, near enough: all widths of int are one, and so are dictionaries and their values.
    pyarrow infers type, scale and zone from each batch, so they may depend on the cut; what a value is does not.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._rows = 0
        self._nulls = self._lengths = self._data = 0
        self._kinds: set[str] = set()

    def add(self, column: Any) -> None:
        """Take the next rows."""
        pa = pyarrow_for("the checksum of a record batch")
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if column.null_count:
            places = pa.compute.indices_nonzero(column.is_null()).cast(pa.int64())
            self._nulls = _crc(pa.compute.add(places, self._rows), self._nulls)
        self._rows += len(column)
        if column.null_count:
            column = column.drop_null()
        if len(column):
            self._add_values(pa, column)

    def _add_values(self, pa: Any, column: Any) -> None:
        types, kind = pa.types, column.type
        if types.is_boolean(kind):
            self._add_fixed("bool", column.cast(pa.uint8()))
        elif types.is_integer(kind):
            if types.is_uint64(kind) and pa.compute.max(column).as_py() >= 1 << 63:
                self._kinds.add("64 bits without sign")
            self._add_fixed("int", column.cast(pa.int64(), safe=False))
        elif types.is_floating(kind):
            self._add_fixed("float", column.cast(pa.float64()))
        elif types.is_string(kind) or types.is_large_string(kind):
            self._add_bytes(pa, "text", column)
        elif types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
            self._add_bytes(pa, "bytes", column)
        elif types.is_primitive(kind) and not types.is_null(kind):
            finer = _in_microseconds(pa, kind)
            zone = " with a zone" if types.is_timestamp(kind) and kind.tz is not None else ""
            unit = getattr(finer, "unit", "")
            self._add_fixed(f"{type(finer).__name__} {unit}{zone}", column.cast(finer, safe=False))
        else:
            self._kinds.add("decimal" if types.is_decimal(kind) else "other")
            values = values_of(column)
            if types.is_decimal(kind):
                values = [canonical(value, self._registry) for value in values]
            for value in values:
                self._data = zlib.crc32(self._registry.pack(value), self._data)

    def _add_fixed(self, kind: str, column: Any) -> None:
        self._kinds.add(kind)
        self._data = _crc(column, self._data)

    def _add_bytes(self, pa: Any, kind: str, column: Any) -> None:
        self._kinds.add(kind)
        column = column.cast(pa.large_binary())
        self._lengths = _crc(pa.compute.binary_length(column), self._lengths)
        _, offsets, data = column.buffers()
        places = pa.Array.from_buffers(pa.int64(), len(column) + 1, [None, offsets], 0, column.offset)
        start, end = places[0].as_py(), places[-1].as_py()
        if end > start:
            self._data = zlib.crc32(memoryview(data)[start:end], self._data)

    def parts(self) -> list[Any]:
        """Return what identifies all rows so far."""
        return [self._rows, self._nulls, self._lengths, self._data, sorted(self._kinds)]


def _in_microseconds(pa: Any, kind: Any) -> Any:
    """Return the type of date or time to count in: microseconds, and nanoseconds where it is those already."""
    types = pa.types
    if types.is_date(kind):
        return pa.date32()
    if types.is_time32(kind):
        return pa.time64("us")
    if types.is_timestamp(kind) and kind.unit != "ns":
        return pa.timestamp("us", kind.tz)
    if types.is_duration(kind) and kind.unit != "ns":
        return pa.duration("us")
    return kind


def _crc(column: Any, crc: int) -> int:
    width = column.type.bit_width // 8
    start = column.offset * width
    return zlib.crc32(memoryview(column.buffers()[1])[start : start + len(column) * width], crc)
