"""Databases, tables and columns; what is visible in them, and what a value must be to fit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

Row = tuple[Any, ...]

_VARCHAR = re.compile(r"(?:var)?char\((\d+)\)")
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64, "largeint": 128}


class Unfit(ValueError):
    """A value that its column does not take."""


@dataclass(frozen=True)
class Column:
    """A column, as `name type` or `name type not null`."""

    name: str
    type: str = "string"
    nullable: bool = True

    @classmethod
    def of(cls, text: str) -> Column:
        """Return the column that a text declares."""
        name, _, rest = text.strip().partition(" ")
        kind = rest.strip().lower() or "string"
        nullable = not kind.endswith("not null")
        column = cls(name, kind.removesuffix("not null").strip(), nullable)
        column.fit("0" if column.type != "datetime" else "2026-01-01 00:00:00")  # an unknown type is told of at once
        return column

    def fit(self, value: Any) -> Any:
        """Return the value as the column holds it.

        Raises:
            Unfit: it is none for this column.
        """
        if value is None:
            if self.nullable:
                return None
            raise Unfit(f"NULL value in non-nullable column '{self.name}'")
        if self.type in _BITS:
            try:
                number = int(value)
            except (TypeError, ValueError):
                raise Unfit(f"Value '{value}' is not a number of column '{self.name}'") from None
            if not -(1 << _BITS[self.type] - 1) <= number < 1 << _BITS[self.type] - 1:
                raise Unfit(f"Value '{value}' is out of range of column '{self.name}'")
            return number
        if self.type in ("double", "float"):
            try:
                return float(value)
            except (TypeError, ValueError):
                raise Unfit(f"Value '{value}' is not a number of column '{self.name}'") from None
        text = value if isinstance(value, str) else str(value)
        if self.type == "datetime":
            try:
                return str(datetime.fromisoformat(text))
            except ValueError:
                raise Unfit(f"Value '{value}' is no time of column '{self.name}'") from None
        found = _VARCHAR.fullmatch(self.type)
        if found is None and self.type != "string":
            raise ValueError(f"column '{self.name}' has type '{self.type}', which the emulator does not know")
        if found is not None and len(text.encode()) > int(found[1]):
            raise Unfit(f"String '{text:.20}' is too long of column '{self.name}'")
        return text


@dataclass
class Table:
    """A table and what is visible in it; with `key`, a primary key table, in which the last row of a key counts."""

    columns: Sequence[Column]
    key: Sequence[str] = ()
    visible: list[Row] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """The columns' names."""
        return [column.name for column in self.columns]

    def rows(self) -> list[Row]:
        """Return what a query sees."""
        if not self.key:
            return list(self.visible)
        at = [self.names.index(name) for name in self.key]
        return list({tuple(row[position] for position in at): row for row in self.visible}.values())
