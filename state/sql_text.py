"""SQL statements: text of ours, into which go nothing but names that were checked when the map was declared."""

from __future__ import annotations

from collections.abc import Sequence
from string import Template

from stormline.state.columns import Column
from stormline.state.table import PREV, REMOVED, TXID, Kind, Table

FENCE = "stormline_fence"
MAPS = "stormline_maps"
PREV_TXID = PREV + TXID
REMOVED_BY = PREV + "removed_by"


def columns_of(table: Table) -> list[str]:
    """Return the names of all columns of a map's table: of the key, of the value, and of its kind."""
    names = [column.name for column in (*table.key, *table.value)]
    if table.kind is not Kind.NON_TRANSACTIONAL:
        names.append(TXID)
    if table.kind is Kind.OPAQUE:
        names += [*(PREV + column.name for column in table.value), PREV_TXID]
    return names


def removed_table(table: Table) -> str:
    """Return the name of the table with what an opaque map's last transaction has removed."""
    return table.name + REMOVED


class Dialect:
    """How one database writes names and parameters."""

    def __init__(self, quote: str, parameter: str) -> None:
        self._quote = quote
        self.parameter = parameter

    def name(self, name: str) -> str:
        """Return a name as it stands in a statement."""
        assert self._quote not in name, name
        return f"{self._quote}{name}{self._quote}"

    def names(self, names: Sequence[str]) -> str:
        """Return names with commas between."""
        return ", ".join(map(self.name, names))

    def key(self, columns: Sequence[Column]) -> str:
        """Return the columns of a key with commas between."""
        return self.names([column.name for column in columns])

    def parameters(self, count: int) -> str:
        """Return as many parameters with commas between."""
        return ", ".join([self.parameter] * count)

    def equal(self, columns: Sequence[Column]) -> str:
        """Return the condition that the key is the parameters'."""
        return " AND ".join(f"{self.name(column.name)} = {self.parameter}" for column in columns)


def statement(template: str, **parts: str) -> str:
    """Return a statement: each $part of the template is a name, or a list of them, that a dialect wrote."""
    return Template(template).substitute(parts)
