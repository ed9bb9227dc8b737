"""TableTransaction: what one transaction reads and stores in one map's table.

What it stores waits in memory until the transaction is prepared, or own SQL wants to see it: then it goes to the
database in one piece. What is stored under keys that nobody reads is not read here either: it waits as the columns that
it was given as, and the database itself looks at the txids. The rules of the three kinds of maps are here, and nowhere
else.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from stormline.state.connection import StoreConnection
from stormline.state.errors import CorruptRow, StoreMismatch
from stormline.state.fence import REMOVE, Fence
from stormline.state.grouped_rows import GroupedRows
from stormline.state.packed_columns import PackedColumns
from stormline.state.read_cache import ReadCache
from stormline.state.refused_rows import write_rows, write_unread_rows
from stormline.state.table import Key, Kind, Row, RowColumns, Table, Values, by_column
from stormline.topology.commit_participants import WHOLE_TOPOLOGY, CommitToken

if TYPE_CHECKING:
    from stormline.topology.serialization import Registry


class TableTransaction:
    """The rows of one table in one transaction. Whoever calls has the connection alone.

    `stored`: the fence that says that the database holds this transaction already. Then nothing is stored any more, and
    what is there is what this transaction stored; but an opaque map is put back to what it was before, and stores
    again. Not where others became durable with it: of one of them alone there is nothing to be put back to.
    """

    def __init__(
        self,
        table: Table,
        token: CommitToken,
        stored: Fence | None,
        registry: Registry,
        cache: ReadCache,
        rows: GroupedRows,
    ) -> None:
        self.table = table
        self._txid = token.txid
        self._alone = token.scope == WHOLE_TOPOLOGY
        self._opaque = table.kind is Kind.OPAQUE
        grouped = stored is not None and bool(stored.earlier)
        self._frozen = stored is not None and (grouped or not self._opaque)
        self._undone = stored is not None and self._alone and not self._frozen
        self._first, self._last = (stored.first, stored.txid) if stored and grouped else (self._txid, self._txid)
        self._rows = rows
        self._packed = PackedColumns(table, registry)
        self._cache = cache
        self._found: dict[Key, Row | None] = {}  # before this transaction
        self._now: dict[Key, Values | None] = {}  # what it has stored; None: removed
        self._waiting: dict[Key, None] = {}  # of these, what the database does not have yet
        self._kept: set[Key] = set()  # of a transactional map, what an earlier attempt has stored
        self._unread: list[tuple[RowColumns, RowColumns]] = []  # keys and values that wait, and were not read

    def open(self, connection: StoreConnection) -> None:
        """Begin; an opaque map that has stored this transaction is put back."""
        if self._opaque and self._undone:
            connection.undo(self.table, self._txid, None)

    @property
    def frozen(self) -> bool:
        """Whether nothing is stored any more."""
        return self._frozen

    def get(self, connection: StoreConnection, keys: Collection[Key]) -> dict[Key, Values | None]:
        """Return what each key holds now; None where it holds nothing."""
        self._load(connection, keys)
        now, found = self._now, self._found
        if self._opaque:
            before = self._before
            return self._unpacked({key: now[key] if key in now else before(found[key]) for key in keys})
        held = {key: None if (row := found[key]) is None else row.values for key in keys}
        if now:
            held.update({key: now[key] for key in keys if key in now})
        return self._unpacked(held)

    def before(self, connection: StoreConnection, keys: Collection[Key]) -> dict[Key, Values | None]:
        """Return what each key of an opaque map held before this transaction."""
        self._load(connection, keys)
        return self._unpacked({key: self._before(self._found[key]) for key in keys})

    def _unpacked(self, held: dict[Key, Values | None]) -> dict[Key, Values | None]:
        if not self._packed:
            return held
        unpacked = self._packed.unpacked
        return {key: None if values is None else unpacked(key, values) for key, values in held.items()}

    def is_kept(self, key: Key) -> bool:
        """Return whether an earlier attempt of this transaction has stored a key, so that it must be left alone."""
        return self._frozen or key in self._kept

    def put(self, changes: Mapping[Key, Values | None]) -> None:
        """Store values of keys that were got before; None removes. What is kept is left alone."""
        if self._frozen:
            return
        if self._packed:
            packed = self._packed.packed
            changes = {key: None if values is None else packed(key, values) for key, values in changes.items()}
        self._put(changes)

    def _put(self, changes: Mapping[Key, Values | None]) -> None:
        if self._kept:
            changes = {key: values for key, values in changes.items() if key not in self._kept}
        self._now.update(changes)
        self._waiting.update(dict.fromkeys(changes))

    def put_columns(self, connection: StoreConnection, keys: RowColumns, values: RowColumns) -> None:
        """Store values, column by column, of keys that need not have been got before. What is kept is left alone."""
        if self._frozen:
            return
        if self._packed:
            rows = zip(zip(*keys, strict=True), zip(*values, strict=True), strict=True)
            values = by_column([self._packed.packed(key, row) for key, row in rows], len(values))
        if self._opaque or self._found or self._rows.now or self._cache.keys_max:
            self._put_read(connection, keys, values)
        else:
            self._unread.append((keys, values))

    def _put_read(self, connection: StoreConnection, keys: RowColumns, values: RowColumns) -> None:
        rows = list(zip(*keys, strict=True))
        self._load(connection, rows)
        self._put(dict(zip(rows, zip(*values, strict=True), strict=True)))

    def _read_the_unread(self, connection: StoreConnection) -> None:
        if self._unread:
            keys, values = self._all_unread()
            self._unread = []
            self._put_read(connection, keys, values)

    def _all_unread(self) -> tuple[RowColumns, RowColumns]:
        """Return what was put, each key once."""
        if len(self._unread) > 1:
            rows: dict[Key, Values] = {}
            for keys, values in self._unread:
                rows.update(zip(zip(*keys, strict=True), zip(*values, strict=True), strict=True))
            table = self.table
            return by_column(list(rows), len(table.key)), by_column(list(rows.values()), len(table.value))
        return self._unread[0]

    def _before(self, row: Row | None) -> Values | None:
        """Return what a row held before this transaction; of a transactional map what it holds, which it may be."""
        if row is None:
            return None
        if self._opaque and row.txid is not None and self._first <= row.txid <= self._last:
            return None if row.prev_txid is None else row.prev
        return row.values

    def _load(self, connection: StoreConnection, keys: Collection[Key]) -> None:
        if self._unread:
            self._read_the_unread(connection)
        unknown = [key for key in keys if key not in self._found]
        if not unknown:
            return
        known = self._rows.known(unknown) if self._rows.before else {}
        if self._cache.keys_max:
            known |= self._cache.known([key for key in unknown if key not in known])
        self._take(known)
        asked = [key for key in unknown if key not in known] if known else unknown
        if not asked:
            return
        read = connection.read(self.table, asked)
        if self._opaque and not self._alone and not self._frozen and (suspects := self._suspects(asked, read)):
            connection.undo(self.table, self._txid, suspects)
            read = connection.read(self.table, asked)
        if self.table.kind is not Kind.NON_TRANSACTIONAL:
            for key, row in read.items():
                txid = row.txid
                if txid is None or txid < 0 or txid > self._last:
                    self._refuse(key, row)
        if len(read) < len(asked):
            self._found.update(dict.fromkeys(asked))
        self._take(read)

    def _take(self, rows: Mapping[Key, Row | None]) -> None:
        self._found.update(rows)
        if self.table.kind is Kind.TRANSACTIONAL:
            txid = self._txid
            self._kept.update([key for key, row in rows.items() if row is not None and row.txid == txid])

    def _suspects(self, keys: Sequence[Key], read: Mapping[Key, Row]) -> list[Key]:
        """Return the keys that another task, before its keys were shared out anew, may have changed or removed."""
        return [key for key in keys if key not in read or read[key].txid == self._txid]

    def _refuse(self, key: Key, row: Row) -> None:
        if row.txid is None or row.txid < 0:
            raise CorruptRow(
                f"table {self.table.name!r} holds {row.txid!r} as txid of key {key}, expected the number of the "
                "transaction that stored it; correct the row, or remove it"
            )
        raise StoreMismatch(
            f"table {self.table.name!r} holds key {key} as stored by transaction {row.txid}, and this is transaction "
            f"{self._txid}: the topology's state was set back or removed, or others write this table; bring the newer "
            f"state back, or, to count from the start, {REMOVE}"
        )

    # ------------------------------------------------------------------------------------ to the database

    def flush(self, connection: StoreConnection) -> None:
        """Give the database what it does not have yet, for more that may come."""
        self._read_the_unread(connection)
        self._rows.flush(connection)
        if not self._waiting:
            return
        if not self._opaque and not any(self._now[key] is None for key in self._waiting):
            write_rows(connection, self.table, self._columns(list(self._waiting)))
        else:
            before = {key: self._base(key) for key in self._waiting}
            self._rows.write(connection, self._changed(self._waiting), before)
        self._waiting = {}

    def flush_last(self, connection: StoreConnection) -> None:
        """Give the database what it does not have yet; nothing more comes."""
        if self._unread:
            keys, values = self._all_unread()
            txids = [[self._txid] * len(keys[0])] if self.table.kind is Kind.TRANSACTIONAL else []
            if not keys[0] or write_unread_rows(connection, self.table, [*keys, *values, *txids]):
                return
        self.flush(connection)  # it finds what the database would not write over

    def _columns(self, keys: Sequence[Key]) -> RowColumns:
        """Return all columns of what these keys of a map that is not opaque hold now."""
        values = [self._now[key] or () for key in keys]
        columns = [*by_column(keys, len(self.table.key)), *by_column(values, len(self.table.value))]
        return columns if self.table.kind is Kind.NON_TRANSACTIONAL else [*columns, [self._txid] * len(keys)]

    def hold(self, connection: StoreConnection) -> None:
        """Leave what was stored to the transactions that follow in the same one of the database."""
        self._read_the_unread(connection)
        self._rows.hold(self._found, self._changed(self._now), self._waiting)

    def _changed(self, keys: Collection[Key]) -> dict[Key, Row | None]:
        now = self._now
        return {key: None if (values := now[key]) is None else self._row(key, values) for key in keys}

    def _base(self, key: Key) -> Row | None:
        """Return a row as it was before this transaction of the database."""
        before = self._rows.before
        found = before[key] if key in before else self._found[key]
        if not self._opaque or found is None or found.txid != self._txid:
            return found
        return None if found.prev is None or found.prev_txid is None else Row(found.prev, found.prev_txid)

    def _row(self, key: Key, values: Values) -> Row:
        if not self._opaque:
            return Row(values, self._txid)
        base = self._base(key)
        return Row(values, self._txid, base and base.values, base and base.txid)

    def remember(self) -> None:
        """Let the cache know what the database holds now that the transaction is committed."""
        if self._cache.keys_max:
            self._cache.remember(self._found)
            self._cache.remember(self._changed(self._now))
