"""JsonRows: JSON Lines, by the standard library's json."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from stormline.spouts.file.boundaries import RowBoundaries
from stormline.spouts.file.rows import RowFormat, RowProblem
from stormline.topology.errors import did_you_mean


class JsonRows(RowFormat):
    """Each line is an object; the values of `fields` are taken by key, else from `defaults`."""

    def __init__(self, encoding: str, fields: Sequence[str], defaults: Mapping[str, Any]) -> None:
        super().__init__(encoding, RowBoundaries())
        self._fields = fields
        self._defaults = defaults
        self._get = itemgetter(*fields)

    def _values(self, item: Any) -> Sequence[Any]:
        """Return the values of a whole object; KeyError, TypeError or AttributeError where it is not one."""
        if self._defaults:
            item = {**self._defaults, **item}
        values = self._get(item)
        return values if len(self._fields) > 1 else (values,)

    def read(self, data: bytes) -> Iterator[Sequence[Any]]:
        loads, values = json.loads, self._values
        for line in self.decode(data).split("\n"):
            if line:
                try:
                    row = values(loads(line))
                except Exception as error:
                    raise RowProblem from error
                yield row

    def read_one(self, row: bytes) -> Sequence[Any]:
        text = self.decode(row)
        try:
            item = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise RowProblem(f"not valid JSON: {error}") from None
        if not isinstance(item, dict):
            raise RowProblem(f"a JSON {type(item).__name__}, expected an object with the keys {list(self._fields)}")
        for field in self._fields:
            if field not in item and field not in self._defaults:
                raise RowProblem(
                    f"the object has no key {field!r}; its keys are {list(item)}{did_you_mean(field, item)}; where "
                    f"keys may be missing pass defaults={{{field!r}: None}}"
                )
        return self._values(item)
