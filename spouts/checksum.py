"""Checksums of rows: whether a source gives the same rows again."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

from stormline.topology.errors import SerializationError, UnregisteredClass

_SIMPLE = frozenset({type(None), bool, int, float, str, bytes})


def rows_checksum(rows: Sequence[Sequence[Any]]) -> int:
    """Return the CRC-32 of rows in their order: of the values and their types, whatever the order of a dict.

    An object of a class that only the topology registers counts by its class.
    """
    from stormline.topology.serialization import PLAIN  # here: msgpack is needed by a run only

    forms = [row if _SIMPLE.issuperset(map(type, row)) else [_form(value) for value in row] for row in rows]
    try:
        return zlib.crc32(PLAIN.pack([list(form) for form in forms]))
    except (UnregisteredClass, SerializationError):
        return zlib.crc32(PLAIN.pack([[_packable(value) for value in form] for form in forms]))


def _form(value: Any) -> Any:
    from stormline.topology.serialization import PLAIN

    kind = type(value)
    if kind is dict:
        pairs = [[_packable(_form(key)), _packable(_form(held))] for key, held in value.items()]
        return ["dict", *sorted(pairs, key=PLAIN.pack)]
    if kind in (list, tuple):
        return [kind.__name__, *map(_form, value)]
    return value


def _packable(value: Any) -> Any:
    from stormline.topology.serialization import PLAIN

    try:
        PLAIN.pack(value)
    except (UnregisteredClass, SerializationError):
        if type(value) is list:
            return [_packable(item) for item in value]
        return f"{type(value).__module__}.{type(value).__qualname__}"
    return value
