"""A checksum of record batches that does not depend on how their rows were cut into batches."""

from __future__ import annotations

import zlib
from typing import Any

from stormline.topology.arrow import pyarrow_for
from stormline.topology.columns import values_of
from stormline.topology.serialization import Registry


class ColumnChecksum:
    """Runs over the values of one column, batch after batch: which rows are null, and the others' values.

    Equal for equal values of one type; dictionaries and large strings count as their values.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._rows = 0
        self._nulls = self._lengths = self._data = 0

    def add(self, column: Any) -> None:
        """Take the next rows."""
        pa = pyarrow_for("the checksum of a record batch")
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if column.null_count:
            places = pa.compute.indices_nonzero(column.is_null()).cast(pa.int64())
            places = pa.compute.add(places, self._rows)
            self._nulls = _crc(places.buffers()[1], places.offset * 8, len(places) * 8, self._nulls)
        self._rows += len(column)
        if column.null_count:
            column = column.drop_null()
        if len(column):
            self._add_values(pa, column)

    def _add_values(self, pa: Any, column: Any) -> None:
        types, kind = pa.types, column.type
        texts = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
        if types.is_boolean(kind):
            column, kind = column.cast(pa.uint8()), pa.uint8()
        if types.is_primitive(kind) or types.is_decimal(kind) or types.is_fixed_size_binary(kind):
            width = kind.bit_width // 8
            self._data = _crc(column.buffers()[1], column.offset * width, len(column) * width, self._data)
        elif any(is_one(kind) for is_one in texts):
            column = column.cast(pa.large_binary())
            lengths = pa.compute.binary_length(column)
            self._lengths = _crc(lengths.buffers()[1], lengths.offset * 8, len(lengths) * 8, self._lengths)
            _, offsets, data = column.buffers()
            places = pa.Array.from_buffers(pa.int64(), len(column) + 1, [None, offsets], 0, column.offset)
            start, end = places[0].as_py(), places[-1].as_py()
            self._data = _crc(data, start, end - start, self._data)
        else:
            for value in values_of(column):
                self._data = zlib.crc32(self._registry.pack(value), self._data)

    def parts(self) -> list[int]:
        """Return what identifies all rows so far."""
        return [self._rows, self._nulls, self._lengths, self._data]


def _crc(buffer: Any, start: int, length: int, crc: int) -> int:
    return zlib.crc32(memoryview(buffer)[start : start + length], crc) if length else crc
