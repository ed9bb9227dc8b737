"""MemoryStore: a database in the memory of this process, for tests and for trying out. All is gone with the process."""

from __future__ import annotations

import sqlite3
import threading
from dataclasses import dataclass, field

from stormline.state.errors import InvalidStore, StoreUnavailable
from stormline.state.sqlite_connection import SQLiteConnection, connected
from stormline.state.store import Store


class _Database(sqlite3.Connection):
    """One that is cleared lives until its last user has ended, and is closed then."""

    def __del__(self) -> None:
        """Close it: Python 3.13 warns of what is not."""
        self.close()


_LOCK = threading.Lock()
_DATABASES: dict[str, tuple[sqlite3.Connection, threading.Lock]] = {}


@dataclass(frozen=True)
class MemoryStore(Store):
    """A SQLite database in memory, by name: the same for all of the process that name it alike.

    Args:
        name (str): Anything.
        timeout_secs (float): How many seconds to wait for another transaction, until the batch is replayed.

    Raises:
        InvalidStore: the name is no text.
    """

    name: str = "memory"
    timeout_secs: float = field(default=5.0, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise InvalidStore(f"a memory store is named {self.name!r}, expected a text")

    def __str__(self) -> str:
        return f"memory:{self.name}"

    def connect(self, reads: bool = False) -> SQLiteConnection:
        """Return the one connection, to be used by one transaction at a time.

        Args:
            reads (bool): Whether it is only to read.
        """
        with _LOCK:
            if self.name not in _DATABASES:
                _DATABASES[self.name] = connected(":memory:", self.timeout_secs, _Database), threading.Lock()
            return _MemoryConnection(*_DATABASES[self.name], self)

    def clear(self) -> None:
        """Forget all that is stored."""
        with _LOCK:
            _DATABASES.pop(self.name, None)


class _MemoryConnection(SQLiteConnection):
    """A turn with the one connection, from `begin` on until the transaction ends."""

    def __init__(self, db: sqlite3.Connection, turn: threading.Lock, store: MemoryStore) -> None:
        super().__init__(lambda: db, str(store))
        self._turn = turn
        self._timeout_secs = store.timeout_secs
        self._has_turn = False

    def begin(self, reads: bool = False) -> None:
        """Wait for the turn, and begin a transaction."""
        if not self._turn.acquire(timeout=self._timeout_secs):
            raise StoreUnavailable(
                f"{self._store} has been in another transaction for {self._timeout_secs:g} s; the batch is replayed"
            )
        self._has_turn = True
        super().begin(reads)

    def commit(self) -> None:
        """Commit, and end the turn."""
        super().commit()
        self._end_turn()

    def rollback(self) -> None:
        """Roll back, and end the turn."""
        if self._has_turn:
            super().rollback()
            self._end_turn()

    def reset(self) -> None:
        """Do nothing: it is the one connection."""

    def close(self) -> None:
        """Roll back what is under way; the database stays."""
        self.rollback()

    def _end_turn(self) -> None:
        self._has_turn = False
        self._turn.release()
