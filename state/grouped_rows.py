"""GroupedRows: what the transactions that one database transaction holds have made of one table's rows so far."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stormline.state.connection import StoreConnection
from stormline.state.read_cache import ReadCache
from stormline.state.refused_rows import write_rows
from stormline.state.table import Key, Kind, Row, Table, rows_by_column


class GroupedRows:
    """The rows of one table in one transaction of the database, which transactions of the topology use in turn.

    Each key is written once, as the last of them leaves it. What an opaque map keeps beside it is what was before the
    first of them: none of them is in the database without the others.

    `before`: rows as the database held them before the first, of keys that were read. `now`: rows that were changed, as
    the database is to hold them; None: removed.
    """

    def __init__(self, table: Table, first_txid: int) -> None:
        self._table = table
        self._first_txid = first_txid
        self.before: dict[Key, Row | None] = {}
        self.now: dict[Key, Row | None] = {}
        self._unwritten: dict[Key, None] = {}

    def known(self, keys: Iterable[Key]) -> dict[Key, Row | None]:
        """Return the rows of those keys that need not be read."""
        now, before = self.now, self.before
        return {key: now[key] if key in now else before[key] for key in keys if key in now or key in before}

    def hold(
        self, found: Mapping[Key, Row | None], changed: Mapping[Key, Row | None], unwritten: Iterable[Key]
    ) -> None:
        """Take over what one transaction has found, what it has changed, and what of this is not written yet."""
        for key, row in found.items():
            if key not in self.now:
                self.before.setdefault(key, row)
        self.now.update(changed)
        self._unwritten.update(dict.fromkeys(unwritten))

    def flush(self, connection: StoreConnection) -> None:
        """Write what the database does not have yet."""
        if self._unwritten:
            self.write(connection, {key: self.now[key] for key in self._unwritten}, self.before)
            self._unwritten = {}

    def write(
        self, connection: StoreConnection, changed: Mapping[Key, Row | None], before: Mapping[Key, Row | None]
    ) -> None:
        """Write rows; of an opaque map those that are removed are kept as they were `before`."""
        removed = [key for key, row in changed.items() if row is None]
        if removed:
            connection.delete(self._table, removed)
        if removed and self._table.kind is Kind.OPAQUE:
            kept = [(key, row) for key in removed if (row := before[key]) is not None]
            connection.keep_removed(self._table, kept, self._first_txid)
        written = {key: row for key, row in changed.items() if row is not None}
        if written:
            write_rows(connection, self._table, rows_by_column(self._table, written))

    def remember(self, cache: ReadCache) -> None:
        """Let the cache know what the database holds now that all is committed."""
        cache.remember(self.before)
        cache.remember(self.now)
