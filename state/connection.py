"""Connection: what each database must be able to do, within one of its transactions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from stormline.state.fence import Fence
from stormline.state.table import Key, Row, RowColumns, Table


class StoreConnection(Protocol):
    """One connection to a database, in one transaction from `begin` to `commit` or `rollback`.

    Calls come one at a time, in changing threads. Keys and rows hold values that their columns take. What a call finds
    out about the database it raises as:

        StoreUnavailable: it does not answer, or not in time: a replay may find it again.
        CorruptRow: a row holds what no map writes; the message names table and key.
        StoreFailed: anything else that the database refuses.
    """

    @property
    def native(self) -> Any:
        """What the user's own SQL is run on."""

    def own_sql(self) -> AbstractContextManager[Any]:
        """Give `native` to the user's own SQL, for a block that must not end the transaction.

        Raises:
            StoreFailed: it did, or tried to.
        """

    def begin(self, reads: bool = False) -> None:
        """Begin a transaction, which waits for others on the same rows, or the same file; not where it only reads."""

    def lock_fence(self, topology: str, scope: str) -> Fence | None:
        """Return what is stored in a scope, and let no other transaction look at it before this one has ended."""

    def fences(self, topology: str) -> Mapping[str, Fence]:
        """Return by scope all that is stored of a topology."""

    def raise_fence(self, topology: str, scope: str, fence: Fence) -> None:
        """Store what this transaction leaves behind."""

    def make_table(self, table: Table, topology: str) -> None:
        """Make a map's table where there is none, and check the one that is there.

        Raises:
            TableMismatch: it has other columns, is another kind of map's, or another topology's.
        """

    def read(self, table: Table, keys: Sequence[Key]) -> dict[Key, Row]:
        """Return the rows of those keys that have one."""

    def read_all(self, table: Table) -> dict[Key, Row]:
        """Return all rows; none where there is no such table."""

    def write(self, table: Table, columns: RowColumns) -> None:
        """Insert or replace rows, each key once."""

    def write_unread(self, table: Table, columns: RowColumns) -> bool:
        """Insert or replace rows of a map that is not opaque, each key once, of which nobody knows what is there.

        A row that this transaction's txid, or a newer one, has stored is left alone, and so is one whose txid is none.

        Returns:
            Whether there was no such row. If there was one, others may have been left alone as well.
        """

    def delete(self, table: Table, keys: Sequence[Key]) -> None:
        """Delete rows."""

    def keep_removed(self, table: Table, rows: Sequence[tuple[Key, Row]], txid: int) -> None:
        """Keep rows of an opaque map that `txid` deletes, and forget those that earlier ones have deleted."""

    def undo(self, table: Table, txid: int, keys: Sequence[Key] | None) -> None:
        """Let rows of an opaque map, those of `keys` or all, be what they were before `txid` stored."""

    def savepoint(self) -> None:
        """Set the one savepoint; an earlier one is forgotten."""

    def undo_to_savepoint(self) -> None:
        """Undo all since the savepoint."""

    def violates_constraint(self, error: BaseException) -> bool:
        """Return whether the user's own SQL failed by a constraint of a table."""

    def translated(self, error: BaseException) -> BaseException:
        """Return what an error of the driver's means, as above; errors of other kinds as they are."""

    def commit(self) -> None:
        """Make all durable and visible."""

    def rollback(self) -> None:
        """Undo all."""

    def reset(self) -> None:
        """Let the session be as a new connection's: own SQL may have left settings or temporary tables in it."""

    def close(self) -> None:
        """Let go of it."""
