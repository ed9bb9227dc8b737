"""Many rows at once into a map's table of PostgreSQL: what is new goes by COPY alone, all else by COPY and MERGE."""

from __future__ import annotations

import logging
from typing import Any

import psycopg

from stormline.state.sql_text import Dialect, columns_of, statement
from stormline.state.table import RowColumns, Table

ROWS_MIN = 1000
"""From so many rows on this is faster than the parameters of one statement."""

log = logging.getLogger("stormline")

_MERGE_SINCE = 150000
_GIVEN = 'pg_temp."stormline_given"'
_LOCKED_COLUMNS = """
    LOCK TABLE $table IN ROW EXCLUSIVE MODE;
    SELECT a.attname,
        format_type(a.atttypid, a.atttypmod)
            || CASE WHEN p.place > 0 THEN coalesce(' COLLATE "' || c.collname || '"', '') ELSE '' END,
        coalesce(p.place, 0)
    FROM pg_attribute a
    LEFT JOIN pg_collation c ON c.oid = a.attcollation
    LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
    CROSS JOIN LATERAL array_position(string_to_array(i.indkey::text, ' ')::int2[], a.attnum) AS p (place)
    WHERE a.attrelid = to_regclass('$table') AND a.attnum > 0 AND NOT a.attisdropped
"""
"""The columns of a table, which nobody can change before the transaction's end: each with its type, the collation where
it is of the key, and its place in the primary key, or 0."""

# A look at a few rows is enough to choose how to join them, and takes 5 ms, not 20. In 4 MB, the server's default,
# 100,000 rows are joined by way of files.
_BEFORE_MERGE = """
    SET LOCAL default_statistics_target = 10;
    ANALYZE $given;
    SELECT set_config('work_mem', '32MB', true) WHERE pg_size_bytes(current_setting('work_mem')) < pg_size_bytes('32MB')
"""

_COPY_TYPES = {
    "bigint": "int8",
    "double precision": "float8",
    "text": "text",
    "bytea": "bytea",
    "boolean": "bool",
    "timestamp with time zone": "timestamptz",
    "date": "date",
    "numeric": "numeric",
}
"""Our types as psycopg knows them."""


class BulkWrite:
    """The rows of one table in one transaction, in the order of their keys.

    Args:
        db: the connection, in a transaction.
        dialect: how PostgreSQL writes names and types.
        table: where the rows go.
        columns: the rows, each key once.
    """

    def __init__(self, db: psycopg.Connection[Any], dialect: Dialect, table: Table, columns: RowColumns) -> None:
        self._db = db
        self._dialect = dialect
        self._table = table
        self._rows = columns
        self._name = dialect.name(table.name)
        self._key = [column.name for column in table.key]
        self._columns = columns_of(table)
        self._types = {name: kind.removesuffix(" NOT NULL") for name, kind in dialect.types_of(table).items()}
        self._casts = dialect.casts_of(table)

    def upsert(self, older: bool) -> int:
        """Insert or replace the rows, where `older` only those that an earlier transaction has stored; return how many.

        Raises:
            psycopg.Error: the database does not take them, or is away.
        """
        if self._nothing_is_there() and self._inserted():
            return len(self._rows[0])
        return self._merged(older)

    # ------------------------------------------------------------------------------------ new keys

    def _nothing_is_there(self) -> bool:
        """Return whether the table is as we make it, and holds nothing from the first key to the last one.

        So it is with a table that is filled, and with keys that grow, as a time does, or a number. One entry of the
        primary key tells it, if that is in the order in which Python has sorted.
        """
        found = self._db.execute(statement(_LOCKED_COLUMNS, table=self._name).encode())
        found.nextset()
        declared = {name: (kind, place) for name, kind, place in found.fetchall()}
        places = {name: place for place, name in enumerate(self._key, start=1)}
        if any(declared.get(name) != (self._types[name], places.get(name, 0)) for name in self._columns):
            return False
        text = statement(
            "SELECT ($key) <= ($given) FROM $table WHERE ($key) >= ($given) ORDER BY $key LIMIT 1",
            key=self._dialect.names(self._key),
            given=", ".join(f"%s::{self._casts[name]}" for name in self._key),
            table=self._name,
        )
        first, last = ([values[place] for values in self._rows[: len(self._key)]] for place in (0, -1))
        return self._db.execute(text.encode(), [*last, *first]).fetchone() != (True,)

    def _inserted(self) -> bool:
        """Copy the rows into the table; return False where it does not take them so: then a merge does, or says why."""
        try:
            with self._db.transaction():  # a savepoint
                self._copy_into(self._name)
        except (psycopg.OperationalError, psycopg.InterfaceError):
            raise
        except psycopg.Error as error:  # keys that another task has just stored, a view, row-level security
            log.debug("table %s takes no COPY: %s", self._table.name, error)
            return False
        return True

    # ------------------------------------------------------------------------------------ any keys

    def _merged(self, older: bool) -> int:
        dialect, names = self._dialect, self._dialect.names(self._columns)
        made = ", ".join(f"{dialect.name(column)} {self._types[column]}" for column in self._columns)
        self._run(
            'DROP TABLE IF EXISTS $given; CREATE TEMPORARY TABLE "stormline_given" ($made) ON COMMIT DROP', made=made
        )
        self._copy_into(_GIVEN)
        if self._db.info.server_version < _MERGE_SINCE:
            source = statement("$given ORDER BY $key", given=_GIVEN, key=dialect.names(self._key))
            return self._run(dialect.upsert_from(self._table.name, self._columns, self._key, source, older))
        self._run(_BEFORE_MERGE)
        return self._run(
            "MERGE INTO $table USING $given AS given ON $joined WHEN MATCHED$older THEN UPDATE SET $sets "
            "WHEN NOT MATCHED THEN INSERT ($names) VALUES ($values)",
            table=self._name,
            joined=dialect.joined(self._table),
            older=f" AND {dialect.is_older(self._table.name, 'given')}" if older else "",
            sets=", ".join(
                f"{dialect.name(one)} = given.{dialect.name(one)}" for one in self._columns if one not in self._key
            ),
            names=names,
            values=", ".join(f"given.{dialect.name(column)}" for column in self._columns),
        )

    def _run(self, text: str, **parts: str) -> int:
        return self._db.execute(statement(text, given=_GIVEN, **parts).encode()).rowcount

    def _copy_into(self, name: str) -> None:
        names = self._dialect.names(self._columns)
        text = statement("COPY $name ($names) FROM STDIN (FORMAT BINARY)", name=name, names=names)
        with self._db.cursor() as cursor, cursor.copy(text.encode()) as copy:
            copy.set_types([_COPY_TYPES[self._casts[column]] for column in self._columns])
            write_row = copy.write_row
            for row in zip(*self._rows, strict=True):
                write_row(row)
