"""EntrySettings: how entries become rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stormline.spouts.redis.client import Entry

PARTS = ("entry_id", "stream")
"""What an entry has beside its own fields."""

_MISSING = object()


class EntryProblem(Exception):
    """Why an entry cannot be read."""


@dataclass(frozen=True)
class EntrySettings:
    """Which fields to take of an entry, what makes values of their texts, and what stands where one is missing."""

    fields: Sequence[str]
    types: Mapping[str, Callable[[str], Any]]
    defaults: Mapping[str, Any]

    def row(self, stream: str, entry: Entry) -> list[Any]:
        """Return the values of an entry.

        Raises:
            EntryProblem: a field is not there, or cannot be read.
        """
        return [self._value(name, stream, entry) for name in self.fields]

    def _value(self, name: str, stream: str, entry: Entry) -> Any:
        entry_id, held = entry
        if name in PARTS:
            return entry_id if name == "entry_id" else stream
        found = held.get(name.encode())
        if found is None:
            default = self.defaults.get(name, _MISSING)
            if default is _MISSING:
                raise EntryProblem(f"it has no field {name!r}, only {[key.decode(errors='replace') for key in held]}")
            return default
        make: Any = self.types.get(name, str)
        try:
            return found if make is bytes else make(found.decode())
        except Exception as error:
            raise EntryProblem(f"field {name!r} is {found!r:.80}: {type(error).__name__}: {error}") from error
