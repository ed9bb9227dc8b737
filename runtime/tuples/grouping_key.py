"""Key: what a fields or partial key grouping knows of keys, shared by all senders of a process."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import chain
from operator import itemgetter
from typing import Any

from stormline.runtime.tuples import column_partitioning
from stormline.runtime.tuples.canonical_form import stable_hashes
from stormline.runtime.tuples.columns import Columns, Row
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.serialization import Registry

REMEMBERED_KEYS_MAX = 100_000
_KNOWN = frozenset(
    {
        str,
        int,
        bool,
        float,
        type(None),
        bytes,
        Decimal,
        dt.date,
        dt.time,
        dt.datetime,
        dt.timedelta,
        uuid.UUID,
        TransactionAttempt,
    }
)
"""Besides tuples of them: what equals one of these, and is exactly of one of these, has the same canonical form."""
_KNOWN_OR_TUPLE = _KNOWN | {tuple}


def all_known(values: Sequence[Any]) -> bool:
    """Return whether all values, and all that stands in tuples among them, are exactly of the known classes."""
    while not _KNOWN.issuperset(map(type, values)):
        if not _KNOWN_OR_TUPLE.issuperset(map(type, values)):
            return False
        values = [*chain.from_iterable([value for value in values if type(value) is tuple])]
    return True


def _may_be_remembered(key: Any) -> bool:
    """Return whether all that equals `key`, which is known, is hashed alike, and is found again.

    Not so of a moment that a zone's clocks show twice; and what equals nothing, not even itself, would take the place
    of others for nothing.
    """
    kind = type(key)
    if kind is tuple:
        return all(map(_may_be_remembered, key))
    if kind is dt.datetime:
        return bool(key.utcoffset() == key.replace(fold=1 - key.fold).utcoffset())
    return bool(key == key)


class _Remembered(dict[Any, Any]):
    """What keys were found to give. It is looked up by Python's equality: so only for keys that are known."""

    def __init__(self, find: Callable[[Any], Any]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, key: Any) -> Any:
        found = self._find(key)
        if len(self) < REMEMBERED_KEYS_MAX and _may_be_remembered(key):
            self[key] = found
        return found


class Key:
    """What each key hashed to, as `of_hashes` makes it of the hashes: the same, whatever was asked for before.

    Keys of built-in classes are remembered. Python's equality, by which a dict is searched, is that of a user's class
    where one is involved: a `numpy.int64(5)` would find what was remembered of another class's 5. So only keys all of
    whose classes are known are searched for at all.
    """

    def __init__(
        self, positions: Sequence[int], registry: Registry, of_hashes: Callable[[tuple[int, int]], Any]
    ) -> None:
        self._single = len(positions) == 1
        self._registry = registry
        self._of_hashes = of_hashes
        self._positions = positions
        self._getters = [itemgetter(position) for position in positions]
        self._remembered = _Remembered(self._find)

    def _find(self, key: Any) -> Any:
        return self._of_hashes(stable_hashes([key] if self._single else key, self._registry))

    def of_rows(self, rows: list[Row]) -> list[Any]:
        """Return what the key of each row hashed to."""
        fields = [[*map(get, rows)] for get in self._getters]
        return self._of_fields(fields) if len(fields) > 1 else self._of_keys(fields[0])

    def of_columns(self, columns: Columns) -> tuple[list[Any], Any]:
        """Return what each key of a record batch hashed to, and for each row the index of its key: a pyarrow array."""
        keys, codes = column_partitioning.keyed(columns, self._positions)
        return self._of_keys(keys), codes

    def _of_fields(self, fields: list[list[Any]]) -> list[Any]:
        try:
            if all(map(all_known, fields)):
                return [*map(self._remembered.__getitem__, zip(*fields, strict=True))]  # zip makes one tuple for all
        except TypeError:  # a signaling NaN cannot be searched for
            pass
        return [*map(self._of_key, zip(*fields, strict=True))]

    def _of_keys(self, keys: list[Any]) -> list[Any]:
        try:
            if all_known(keys):
                return [*map(self._remembered.__getitem__, keys)]
        except TypeError:
            pass
        return [*map(self._of_key, keys)]

    def _of_key(self, key: Any) -> Any:
        try:
            if all_known((key,)):
                return self._remembered[key]
        except TypeError:
            pass
        return self._find(key)
