"""Where a peer's batches are stored, each exactly once: counts, and beside them the last batch that is in them."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol


class BatchStore(Protocol):
    """Adds the counts of batches to those that are stored."""

    def add(self, batch_id: int, counts: Mapping[str, int]) -> None:
        """Add a batch's counts and store its id, in one transaction; a batch that is stored adds nothing."""

    def counts(self) -> dict[str, int]:
        """Return all counts."""

    def close(self) -> None:
        """Close the database."""


class SQLiteBatches:
    """In a file; one that is there already goes on."""

    def __init__(self, path: Path) -> None:
        # foreachBatch is called by a thread of its own, one batch at a time.
        self._database = sqlite3.connect(path, timeout=60, check_same_thread=False, isolation_level=None)
        self._database.execute("CREATE TABLE IF NOT EXISTS counts (key TEXT PRIMARY KEY, count INTEGER NOT NULL)")
        self._database.execute("CREATE TABLE IF NOT EXISTS last (txid INTEGER NOT NULL)")
        self._database.execute("INSERT INTO last SELECT -1 WHERE NOT EXISTS (SELECT * FROM last)")

    def add(self, batch_id: int, counts: Mapping[str, int]) -> None:
        cursor = self._database.cursor()
        cursor.execute("BEGIN IMMEDIATE")
        (last,) = cursor.execute("SELECT txid FROM last").fetchone()
        if batch_id > last:
            cursor.executemany(
                "INSERT INTO counts VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET count = count + excluded.count",
                counts.items(),
            )
            cursor.execute("UPDATE last SET txid = ?", (batch_id,))
        cursor.execute("COMMIT")

    def counts(self) -> dict[str, int]:
        return dict(self._database.execute("SELECT key, count FROM counts").fetchall())

    def close(self) -> None:
        self._database.close()


class PostgreSQLBatches:
    """In a PostgreSQL database: one statement of lists for all keys of a batch, the fastest for some thousand."""

    def __init__(self, dsn: str) -> None:
        import psycopg

        self._database: Any = psycopg.connect(dsn, autocommit=True, client_encoding="UTF8")
        self._database.execute(
            'CREATE TABLE counts (key text COLLATE "C" PRIMARY KEY, count bigint NOT NULL) WITH (fillfactor = 50)'
        )
        self._database.execute("CREATE TABLE last (txid bigint NOT NULL)")
        self._database.execute("INSERT INTO last VALUES (-1)")

    def add(self, batch_id: int, counts: Mapping[str, int]) -> None:
        with self._database.transaction():
            (last,) = self._database.execute("SELECT txid FROM last FOR UPDATE").fetchone()
            if batch_id > last:
                keys = sorted(counts)
                self._database.execute(
                    "INSERT INTO counts SELECT * FROM UNNEST(%s::text[], %s::bigint[]) "
                    "ON CONFLICT (key) DO UPDATE SET count = counts.count + excluded.count",
                    [keys, [counts[key] for key in keys]],
                )
                self._database.execute("UPDATE last SET txid = %s", [batch_id])

    def counts(self) -> dict[str, int]:
        return dict(self._database.execute("SELECT key, count FROM counts").fetchall())

    def close(self) -> None:
        self._database.close()
