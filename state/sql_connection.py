"""SQLConnection: a store's work in SQL, as far as all databases understand the same."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from stormline.state.errors import CorruptRow, RowRefused, StoreFailed, StoreUnavailable, TableMismatch
from stormline.state.fence import Fence
from stormline.state.sql_text import (
    FENCE,
    PREV_TXID,
    REMOVED_BY,
    Dialect,
    columns_of,
    removed_columns,
    removed_table,
    statement,
)
from stormline.state.sql_values import SQLValues
from stormline.state.table import PREV, TXID, Key, Kind, Row, RowColumns, Table
from stormline.state.table_claim import MAPS, check_claim

GRANT = (
    "grant the store's user SELECT, INSERT, UPDATE and DELETE on its tables, and the right to make tables, or make "
    "them for it"
)
GONE = (
    "the database was emptied, or is another one: bring it back, or, to count from the start, remove the topology's "
    "state too"
)
IDLE_TIMES = 6
"""How many of a store's time-outs a server lets a transaction be idle: then it ends it, and lets go of the fence."""


class SQLConnection(ABC):
    """One connection to a database that speaks SQL; see `StoreConnection`. A subclass knows one driver.

    `store`: what messages call it.
    """

    dialect: Dialect
    values: SQLValues
    errors: tuple[type[Exception], ...]
    """What the driver raises."""

    def __init__(self, store: str) -> None:
        self._store = store

    # ------------------------------------------------------------------------------------ of one driver

    @property
    @abstractmethod
    def native(self) -> Any:
        """What the user's own SQL is run on."""

    @abstractmethod
    def _run(self, text: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement, and return its rows, if any."""

    @abstractmethod
    def _run_many(self, text: str, rows: Iterable[Sequence[Any]]) -> int:
        """Run a statement for each of many rows of parameters; return how many rows of the table it has changed."""

    @abstractmethod
    def _columns(self, table: str) -> dict[str, tuple[str, int]]:
        """Return the columns of a table: the type of each, and its place in the primary key, from 1 on, or 0."""

    @abstractmethod
    def _holds(self, declared: str, wanted: str) -> bool:
        """Return whether a column of the type `declared` holds values of our type `wanted` as they are."""

    @abstractmethod
    def translated(self, error: BaseException) -> BaseException:
        """Return what an error of the driver's means."""

    @abstractmethod
    def _refuses_row(self, error: BaseException) -> bool:
        """Return whether an error of the driver's is about a value of one row."""

    @abstractmethod
    def _remedy(self, error: BaseException) -> str:
        """Return what is to be done about an error of the driver's; nothing where its text says it, or nobody knows."""

    @abstractmethod
    def violates_constraint(self, error: BaseException) -> bool:
        """Return whether SQL failed by a constraint of a table."""

    @abstractmethod
    def begin(self, reads: bool = False) -> None:
        """Begin a transaction."""

    @abstractmethod
    def read(self, table: Table, keys: Sequence[Key]) -> dict[Key, Row]:
        """Return the rows of those keys that have one."""

    @abstractmethod
    def reset(self) -> None:
        """Let the session be as a new connection's."""

    @abstractmethod
    def close(self) -> None:
        """Let go of it."""

    @contextmanager
    def _told(self, what: str) -> Iterator[None]:
        """Let an error of the driver's say what it means, and in what it came."""
        try:
            yield
        except self.errors as error:
            meant = self.translated(error)
            if meant is not error:
                raise meant from error
            kind = RowRefused if self._refuses_row(error) else StoreFailed
            remedy = f"; {remedy}" if (remedy := self._remedy(error)) else ""
            why = str(error).strip().replace("\n", " ")
            raise kind(f"{self._store} fails in {what}: {type(error).__name__}: {why}{remedy}") from error

    # ------------------------------------------------------------------------------------ own SQL

    @abstractmethod
    def _in_transaction(self) -> bool:
        """Return whether a transaction is under way, without asking the server."""

    @contextmanager
    def own_sql(self) -> Iterator[Any]:
        """Give the driver's own connection to the user's own SQL, which must not end the transaction."""
        yield self.native
        if not self._in_transaction():
            raise self._ended_by_own_sql("has ended")

    def _ended_by_own_sql(self, what: str) -> StoreFailed:
        return StoreFailed(
            f"own SQL in transaction() of {self._store} {what} the transaction, by commit(), rollback(), close(), "
            "'with connection:', or a statement that does so by itself; leave that out: the store commits it with all "
            "else, or rolls it back"
        )

    # ------------------------------------------------------------------------------------ transaction and fence

    def lock_fence(self, topology: str, scope: str) -> Fence | None:
        """Return what is stored in a scope, and lock it."""
        text = statement(
            "SELECT epoch, txid, attempt, commit_id, earlier FROM $fence WHERE topology = $p AND scope = $p$lock",
            fence=FENCE,
            p=self.dialect.parameter,
            lock=self.dialect.for_update,
        )
        with self._told("reading the fence"):
            found = self._run(text, [topology, scope])
        return self._fence(topology, scope, found[0]) if found else None

    def _fence(self, topology: str, scope: str, found: tuple[Any, ...]) -> Fence:
        epoch, txid, attempt, commit_id, earlier = found
        numbers = (epoch, txid, attempt, commit_id)
        ids = earlier.split() if isinstance(earlier, str) else ["?"]
        if not all(type(value) is int and value >= 0 for value in numbers) or not all(map(str.isdecimal, ids)):
            raise CorruptRow(
                f"table {FENCE!r} of {self._store} holds {found} for topology {topology!r}, scope {scope!r}, "
                "expected four numbers, and numbers in a text; bring back a whole copy of the database"
            )
        return Fence(*numbers, earlier=tuple(map(int, ids)))

    def fences(self, topology: str) -> dict[str, Fence]:
        """Return by scope all that is stored of a topology."""
        text = statement(
            "SELECT scope, epoch, txid, attempt, commit_id, earlier FROM $fence WHERE topology = $p",
            fence=FENCE,
            p=self.dialect.parameter,
        )
        with self._told("reading the fence"):
            found = self._run(text, [topology])
        return {scope: self._fence(topology, scope, tuple(one)) for scope, *one in found}

    def topologies(self) -> list[str]:
        """Return the topologies of which something is stored; none where nobody has stored."""
        text = statement("SELECT DISTINCT topology FROM $fence ORDER BY topology", fence=FENCE)
        with self._told("reading the fence"):
            return [topology for (topology,) in self._run(text)] if self._columns(FENCE) else []

    def claims(self) -> dict[str, tuple[str, str]]:
        """Return whose each map's table is, and what that map declares, by its name."""
        text = statement("SELECT name, topology, declared FROM $maps ORDER BY name", maps=MAPS)
        with self._told(f"reading {MAPS!r}"):
            found = self._run(text) if self._columns(MAPS) else []
        return {name: (topology, declared) for name, topology, declared in found}

    def raise_fence(self, topology: str, scope: str, fence: Fence) -> None:
        """Store what this transaction leaves behind."""
        columns = ["topology", "scope", "epoch", "txid", "attempt", "commit_id", "earlier"]
        text = self.dialect.upsert(FENCE, columns, columns[:2])
        *numbers, earlier = fence
        with self._told("raising the fence"):
            self._run(text, [topology, scope, *numbers, " ".join(map(str, earlier))])

    def savepoint(self) -> None:
        """Set the one savepoint."""
        with self._told("setting a savepoint"):
            self._run("SAVEPOINT stormline_own")

    def undo_to_savepoint(self) -> None:
        """Undo all since the savepoint."""
        with self._told("undoing own SQL"):
            self._run("ROLLBACK TO SAVEPOINT stormline_own")
            self._run("RELEASE SAVEPOINT stormline_own")

    # ------------------------------------------------------------------------------------ tables

    def make_table(self, table: Table, topology: str) -> None:
        """Make a map's table where there is none, and check the one that is there."""
        with self._told(f"making table {table.name!r}"):
            self._claim(table, topology)
            found = self._columns(table.name)
            if found:
                self._check(table, found)
            else:
                self._run(self.dialect.create(table.name, columns_of(table), table))
            if table.kind is Kind.OPAQUE and not self._columns(removed_table(table)):
                self._run(self.dialect.create(removed_table(table), removed_columns(table), table))

    def _claim(self, table: Table, topology: str) -> None:
        """Let a table be one topology's, and one declaration's."""
        p = self.dialect.parameter
        text = statement("SELECT topology, declared FROM $maps WHERE name = $p", maps=MAPS, p=p)
        found = self._run(text, [table.name])
        if not found:
            text = statement("INSERT INTO $maps (name, topology, declared) VALUES ($p, $p, $p)", maps=MAPS, p=p)
            try:
                self._run(text, [table.name, topology, table.described()])
            except self.errors as error:
                if self.violates_constraint(error):  # two tasks on executors, say, in the first commit
                    raise StoreUnavailable(
                        f"{self._store}: table {table.name!r} has been made by somebody else at the same moment; the "
                        "batch is replayed"
                    ) from error
                raise
            return
        ((found_topology, declared),) = found
        check_claim(self._store, table, topology, found_topology, declared)

    def _check(self, table: Table, found: Mapping[str, tuple[str, int]]) -> None:
        """Check the columns of a table that is there: their names and types, and the primary key."""
        types = self.dialect.types_of(table)
        for column in columns_of(table):
            if column not in found:
                raise TableMismatch(
                    f"table {table.name!r} of {self._store} has no column {column!r}, which the map needs: "
                    f"{table.described()}; it has {sorted(found)}: add the column ({types[column]}), or name another "
                    "table"
                )
            if not self._holds(found[column][0], types[column].removesuffix(" NOT NULL")):
                raise TableMismatch(
                    f"column {column!r} of table {table.name!r} of {self._store} is of type {found[column][0]}, "
                    f"expected {types[column]}; declare the map as the table is, or name another table"
                )
        key = [name for name, (_, place) in sorted(found.items(), key=lambda item: item[1][1]) if place]
        if sorted(key) != sorted(column.name for column in table.key):
            raise TableMismatch(
                f"table {table.name!r} of {self._store} has the primary key {key}, expected "
                f"{[column.name for column in table.key]}: each key of the map is one row; name another table"
            )

    # ------------------------------------------------------------------------------------ rows

    def _selected(self, table: Table) -> str:
        """Return the columns after the key, with commas between."""
        return self.dialect.names(columns_of(table)[len(table.key) :])

    def read_all(self, table: Table, rows_max: int | None = None) -> dict[Key, Row]:
        """Return all rows, or the first ones by their key; none where there is no such table."""
        columns, name = self.dialect.names(columns_of(table)), self.dialect.name(table.name)
        text = statement("SELECT $columns FROM $name", columns=columns, name=name)
        if rows_max is not None:
            key = self.dialect.names([column.name for column in table.key])
            text += statement(" ORDER BY $key LIMIT $rows", key=key, rows=str(rows_max))
        with self._told(f"reading table {table.name!r}"):
            found = self._run(text) if self._columns(table.name) else []
        return self._rows(table, found)

    def count(self, table: Table) -> int:
        """Return the number of rows; 0 where there is no such table."""
        text = statement("SELECT count(*) FROM $name", name=self.dialect.name(table.name))
        with self._told(f"reading table {table.name!r}"):
            return int(self._run(text)[0][0]) if self._columns(table.name) else 0

    def _rows(self, table: Table, found: Sequence[tuple[Any, ...]]) -> dict[Key, Row]:
        """Return rows that were read with their keys."""
        key_of, row_of = self.values.key_read(table), self.values.row_read(table)
        width = len(table.key)
        together = self.values.rows_read(table, [one[width:] for one in found])
        if together is not None:
            return dict(zip([key_of(one[:width]) for one in found], together, strict=True))
        rows: dict[Key, Row] = {}
        one: tuple[Any, ...] = ()
        try:
            for one in found:
                rows[key_of(one[:width])] = row_of(one[width:])
        except (ValueError, TypeError, ArithmeticError) as error:
            raise self._corrupt(table, one[:width], error) from error
        return rows

    def _corrupt(self, table: Table, key: Key, why: object) -> CorruptRow:
        return CorruptRow(
            f"table {table.name!r} of {self._store} holds for key {key} what its map cannot have written: {why}; "
            "correct the row, or remove it"
        )

    def write(self, table: Table, columns: RowColumns) -> None:
        """Insert or replace rows."""
        with self._told(f"writing table {table.name!r}"):
            self._upsert(table, self.values.sorted_columns(table, columns), older=False)

    def write_unread(self, table: Table, columns: RowColumns) -> bool:
        """Insert or replace rows of which nobody knows what is there; return whether nothing was in the way."""
        if table.kind is Kind.NON_TRANSACTIONAL:
            self.write(table, columns)
            return True
        with self._told(f"writing table {table.name!r}"):
            return self._upsert(table, self.values.sorted_columns(table, columns), older=True) == len(columns[0])

    def _upsert(self, table: Table, columns: RowColumns, older: bool) -> int:
        """Insert or replace rows, where `older` only those that an earlier transaction has stored; return how many."""
        text = self.dialect.upsert(table.name, columns_of(table), [column.name for column in table.key], older)
        return self._run_many(text, zip(*columns, strict=True))

    def delete(self, table: Table, keys: Sequence[Key]) -> None:
        """Delete rows."""
        text = statement(
            "DELETE FROM $table WHERE $key", table=self.dialect.name(table.name), key=self.dialect.equal(table.key)
        )
        with self._told(f"removing from table {table.name!r}"):
            self._run_many(text, self.values.written(table.key, keys))

    def keep_removed(self, table: Table, rows: Sequence[tuple[Key, Row]], txid: int) -> None:
        """Keep rows that `txid` deletes, and forget those that earlier ones have deleted."""
        name = removed_table(table)
        forget = statement(
            "DELETE FROM $table WHERE $by < $p",
            table=self.dialect.name(name),
            by=REMOVED_BY,
            p=self.dialect.parameter,
        )
        text = self.dialect.upsert(name, removed_columns(table), [column.name for column in table.key])
        kept = self.values.written((*table.key, *table.value), [(*key, *row.values) for key, row in rows])
        with self._told(f"writing table {name!r}"):
            self._run(forget, [txid])
            if rows:
                self._run_many(text, [(*one, row.txid, txid) for one, (_, row) in zip(kept, rows, strict=True)])

    def undo(self, table: Table, txid: int, keys: Sequence[Key] | None) -> None:
        """Let rows be what they were before `txid`."""
        dialect = self.dialect
        own = [column.name for column in (*table.key, *table.value)]
        parts = {
            "p": dialect.parameter,
            "table": dialect.name(table.name),
            "removed": dialect.name(removed_table(table)),
            "by": REMOVED_BY,
            "txid": dialect.name(TXID),
            "prev_txid": dialect.name(PREV_TXID),
            "sets": ", ".join(
                f"{dialect.name(column.name)} = {dialect.name(PREV + column.name)}" for column in table.value
            ),
            "key": "" if keys is None else f" AND {dialect.equal(table.key)}",
        }
        undo = [
            statement("DELETE FROM $table WHERE $txid = $p AND $prev_txid IS NULL$key", **parts),
            statement("UPDATE $table SET $sets, $txid = $prev_txid, $prev_txid = NULL WHERE $txid = $p$key", **parts),
            dialect.upsert_from(
                table.name, [*own, TXID], own[: len(table.key)], statement("$removed WHERE $by = $p$key", **parts)
            ),
            statement("DELETE FROM $removed WHERE $by = $p$key", **parts),
        ]
        each = [()] if keys is None else self.values.written(table.key, keys)
        with self._told(f"undoing transaction {txid} in table {table.name!r}"):
            for text in undo:
                self._run_many(text, [(txid, *key) for key in each])
