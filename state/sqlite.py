"""SQLiteStore: a file of this machine. The default store."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path

from stormline.state.errors import InvalidStore, StoreFailed
from stormline.state.sqlite_connection import SQLiteConnection, connected
from stormline.state.store import Store


@dataclass(frozen=True)
class SQLiteStore(Store):
    """A SQLite database. What is committed is on disk: it outlives a power cut as well.

    Any program may read it meanwhile, and sees whole transactions; one that writes keeps commits waiting. On the
    executors' machines there is no such file: it is for commits in the driver.

    Args:
        path (str | os.PathLike[str]): The file, made where it is missing, with its folder.
        timeout_secs (float): How many seconds to wait for others that write, until the batch is replayed.

    Raises:
        InvalidStore: `path` is none.
    """

    path: str | os.PathLike[str] = field(compare=False)
    timeout_secs: float = field(default=5.0, compare=False)
    _file: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.path, (str, os.PathLike)) or not os.fspath(self.path):
            raise InvalidStore(f"a SQLite store is at {self.path!r}, expected a path")
        object.__setattr__(self, "path", str(Path(self.path)))
        object.__setattr__(self, "_file", os.path.realpath(self.path))  # two names of one file are one store

    def __str__(self) -> str:
        return f"sqlite:{self.path}"

    def connect(self, reads: bool = False) -> SQLiteConnection:
        """Return a new connection.

        Args:
            reads (bool): Whether it is only to read.

        Raises:
            StoreFailed: There is no file to read, or it is no database.
            StoreUnavailable: Others keep it locked.
        """

        def open_file() -> sqlite3.Connection:
            path = Path(self.path)
            if reads:
                if not path.is_file():
                    raise StoreFailed(f"there is no database at {self}; nothing was made: check the path")
                return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", timeout=self.timeout_secs, uri=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            return connected(str(path), self.timeout_secs)

        return SQLiteConnection(open_file, str(self), os.path.abspath(self.path))
