"""ReadCache: the rows of a table that this process read or stored last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping

from stormline.state.table import Key, Row


class ReadCache:
    """Rows by key, at most `keys_max`: those that were used longest ago go first. No row counts as one."""

    def __init__(self, keys_max: int) -> None:
        self.keys_max = keys_max
        self._rows: OrderedDict[Key, Row | None] = OrderedDict()

    def known(self, keys: Iterable[Key]) -> dict[Key, Row | None]:
        """Return the rows of those keys that are known."""
        found = {key: self._rows[key] for key in keys if key in self._rows}
        for key in found:
            self._rows.move_to_end(key)
        return found

    def remember(self, rows: Mapping[Key, Row | None]) -> None:
        """Remember rows as they are stored now."""
        if not self.keys_max:
            return
        for key, row in rows.items():
            self._rows[key] = row
            self._rows.move_to_end(key)
        while len(self._rows) > self.keys_max:
            self._rows.popitem(last=False)
