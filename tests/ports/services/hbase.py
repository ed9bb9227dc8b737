"""A stand-in for HBase: tables of this process, rows of columns, and a conditional write of one row."""

from __future__ import annotations

import threading
from typing import Any

Row = dict[str, Any]


class Table:
    """One table; all its handles are this one object."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self._lock = threading.Lock()

    def get(self, key: str) -> Row:
        return dict(self.rows.get(key, {}))

    def check_and_put(self, key: str, column: str, expected: Any, values: Row) -> bool:
        """Write columns of a row where `column` has the expected value (None: it has none)."""
        with self._lock:
            row = self.rows.setdefault(key, {})
            if row.get(column) != expected:
                return False
            row.update(values)
            return True


_TABLES: dict[str, Table] = {}


def table(name: str) -> Table:
    """Return the handle of a table."""
    return _TABLES.setdefault(name, Table())


def drop_all() -> None:
    """Drop all tables."""
    _TABLES.clear()
