"""SQL statements: text of ours, into which go nothing but names that were checked when the map was declared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import Template

from stormline.state.columns import Column, ColumnType
from stormline.state.table import PREV, REMOVED, TXID, Kind, Table
from stormline.state.table_claim import MAPS

FENCE = "stormline_fence"

PREV_TXID = PREV + TXID
REMOVED_BY = PREV + "removed_by"


def statement(template: str, **parts: str) -> str:
    """Return a statement: each $part of the template is a name, or a list of them, that a dialect wrote."""
    return Template(template).substitute(parts)


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


def removed_columns(table: Table) -> list[str]:
    """Return its columns."""
    return [*(column.name for column in (*table.key, *table.value)), TXID, REMOVED_BY]


class Dialect:
    """How one database writes names, parameters, types and upserts.

    Args:
        quote: stands around a name.
        parameter: stands for one.
        types: the name of each column type; `key_types` those of the key's columns where they differ.
        table_options: what a table that we make ends with.
        for_update: what a query ends with that locks its rows.
    """

    def __init__(
        self,
        quote: str,
        parameter: str,
        types: Mapping[ColumnType, str],
        key_types: Mapping[ColumnType, str] | None = None,
        table_options: str = "",
        for_update: str = "",
    ) -> None:
        self._quote = quote
        self.parameter = parameter
        self._types = types
        self._key_types = {**types, **(key_types or {})}
        self.table_options = table_options
        self.for_update = for_update

    def name(self, name: str) -> str:
        """Return a name as it stands in a statement."""
        assert self._quote not in name, name
        return f"{self._quote}{name}{self._quote}"

    def names(self, names: Sequence[str]) -> str:
        """Return names with commas between."""
        return ", ".join(map(self.name, names))

    def parameters(self, count: int) -> str:
        """Return as many parameters with commas between."""
        return ", ".join([self.parameter] * count)

    def equal(self, columns: Sequence[Column]) -> str:
        """Return the condition that the key is the parameters'."""
        return " AND ".join(f"{self.name(column.name)} = {self.parameter}" for column in columns)

    def types_of(self, table: Table) -> dict[str, str]:
        """Return the type of each column that a map's tables may have."""
        types = {column.name: f"{self._key_types[column.type]} NOT NULL" for column in table.key}
        types |= {column.name: self._types[column.type] for column in table.value}
        types |= {PREV + column.name: self._types[column.type] for column in table.value}
        number = self._types[ColumnType.INTEGER]
        return types | {TXID: f"{number} NOT NULL", PREV_TXID: number, REMOVED_BY: f"{number} NOT NULL"}

    def casts_of(self, table: Table) -> dict[str, str]:
        """Return the type of each of these columns as a value is cast to it: no collation, no constraint."""
        types = self.types_of(table).items()
        return {name: kind.removesuffix(" NOT NULL").partition(" COLLATE")[0] for name, kind in types}

    def create(self, name: str, columns: Sequence[str], table: Table) -> str:
        """Return the statement that makes one of a map's tables, with these columns."""
        types = self.types_of(table)
        return statement(
            "CREATE TABLE $name ($columns, PRIMARY KEY ($key))$options",
            name=self.name(name),
            columns=", ".join(f"{self.name(column)} {types[column]}" for column in columns),
            key=self.names([column.name for column in table.key]),
            options=self.table_options,
        )

    def upsert(self, name: str, columns: Sequence[str], key: Sequence[str], older: bool = False, rows: int = 1) -> str:
        """Return the statement that inserts or replaces rows of parameters; where `older`, see `otherwise`."""
        return statement(
            "INSERT INTO $name ($columns) VALUES $parameters $otherwise",
            name=self.name(name),
            columns=self.names(columns),
            parameters=", ".join([f"({self.parameters(len(columns))})"] * rows),
            otherwise=self.otherwise(name, columns, key, older),
        )

    def upsert_from(
        self, name: str, columns: Sequence[str], key: Sequence[str], source: str, older: bool = False
    ) -> str:
        """Return the statement that inserts or replaces rows of a source: a table, and a condition."""
        return statement(
            "INSERT INTO $name ($columns) SELECT $columns FROM $source $otherwise",
            name=self.name(name),
            columns=self.names(columns),
            source=source,
            otherwise=self.otherwise(name, columns, key, older),
        )

    def otherwise(self, table: str, columns: Sequence[str], key: Sequence[str], older: bool) -> str:
        """Return what an insert does where there is a row of this key; where `older`, only if its txid is."""
        sets = ", ".join(f"{self.name(name)} = excluded.{self.name(name)}" for name in columns if name not in key)
        where = f" WHERE {self.is_older(table, 'excluded')}" if older else ""
        return statement("ON CONFLICT ($key) DO UPDATE SET $sets$where", key=self.names(key), sets=sets, where=where)

    def is_older(self, table: str, given: str) -> str:
        """Return the condition that an earlier transaction than that of a row which is given has stored a row."""
        txid = self.name(TXID)
        return f"{self.name(table)}.{txid} BETWEEN 0 AND {given}.{txid} - 1"

    def joined(self, table: Table) -> str:
        """Return the condition that a row has the key of a row of `given`."""
        name, key = self.name(table.name), [self.name(column.name) for column in table.key]
        return " AND ".join(f"{name}.{column} = given.{column}" for column in key)

    def own_tables(self, key_text: str, text: str, number: str) -> list[str]:
        """Return the statements that make Stormline's own tables, given the types of keys, texts and numbers."""
        numbers = ", ".join(f"{name} {number} NOT NULL" for name in ("epoch", "txid", "attempt", "commit_id"))
        keys = f"topology {key_text} NOT NULL, scope {key_text} NOT NULL"
        return [
            statement(
                "CREATE TABLE IF NOT EXISTS $fence "
                "($keys, $numbers, earlier $text NOT NULL, PRIMARY KEY (topology, scope))$options",
                fence=FENCE,
                keys=keys,
                numbers=numbers,
                text=text,
                options=self.table_options,
            ),
            statement(
                "CREATE TABLE IF NOT EXISTS $maps "
                "(name $key NOT NULL PRIMARY KEY, topology $key NOT NULL, declared $text NOT NULL)$options",
                maps=MAPS,
                key=key_text,
                text=text,
                options=self.table_options,
            ),
        ]
