"""Bare upserts: many keys in one commit by each database's driver alone, in the fastest way that we know of.

The tables are the maps' own, so that both write the same columns under the same primary key. No fence, no look at what
is there, no check of a value: the rows are given as the drivers take them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, Protocol

from stormline.state import MySQLStore, PostgreSQLStore, RedisStore, SQLiteStore

TABLE = "words"
ROWS_A_STATEMENT = 2_000
FIELDS_A_COMMAND = 1_000
INSERT = "INSERT INTO words (word, `count`, txid) VALUES"
UPSERT = "ON DUPLICATE KEY UPDATE `count` = VALUES(`count`), txid = VALUES(txid)"

Rows = Sequence[tuple[str, int, int]]
"""Key, value, txid."""


class BareUpsert(Protocol):
    """Writes rows into the table of a map (word) -> (count)."""

    def empty(self) -> None:
        """Remove all rows of the table."""

    def write(self, rows: Rows) -> None:
        """Insert or replace rows in one transaction, durably."""

    def close(self) -> None:
        """Let go of the connection."""


class BareSQLite:
    """`executemany` of an upsert."""

    def __init__(self, store: SQLiteStore) -> None:
        self._db = sqlite3.connect(store.path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")

    def empty(self) -> None:
        self._db.execute("DELETE FROM words")
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def write(self, rows: Rows) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany(
            "INSERT INTO words (word, count, txid) VALUES (?, ?, ?) "
            "ON CONFLICT (word) DO UPDATE SET count = excluded.count, txid = excluded.txid",
            rows,
        )
        self._db.execute("COMMIT")

    def close(self) -> None:
        self._db.close()


class BareCopy:
    """PostgreSQL's binary COPY, which can write new keys only."""

    def __init__(self, store: PostgreSQLStore) -> None:
        import psycopg

        self._db = psycopg.connect(store.dsn, autocommit=True)

    def empty(self) -> None:
        self._db.execute(f"TRUNCATE {TABLE}".encode())
        self._db.execute("CHECKPOINT")

    def write(self, rows: Rows) -> None:
        with (
            self._db.cursor() as cursor,
            cursor.copy(f"COPY {TABLE} (word, count, txid) FROM STDIN (FORMAT BINARY)".encode()) as copy,
        ):
            copy.set_types(["text", "int8", "int8"])
            for row in rows:
                copy.write_row(row)

    def close(self) -> None:
        self._db.close()


class BareMariaDB:
    """PyMySQL, an upsert of some thousand rows a statement."""

    def __init__(self, store: MySQLStore) -> None:
        import pymysql

        host, _, rest = store.url.partition("@")[2].partition(":")
        port, _, name = rest.partition("/")
        self._db = pymysql.connect(host=host, port=int(port), user="stormline", database=name, autocommit=True)

    def empty(self) -> None:
        with self._db.cursor() as cursor:
            cursor.execute(f"TRUNCATE {TABLE}")

    def write(self, rows: Rows) -> None:
        with self._db.cursor() as cursor:
            cursor.execute("START TRANSACTION")
            for i in range(0, len(rows), ROWS_A_STATEMENT):
                part = rows[i : i + ROWS_A_STATEMENT]
                values = ",".join(["(%s,%s,%s)"] * len(part))
                cursor.execute(f"{INSERT} {values} {UPSERT}", [value for row in part for value in row])
            cursor.execute("COMMIT")

    def close(self) -> None:
        self._db.close()


class BareRedis:
    """MULTI with HSET of a thousand fields a command; value and txid as msgpack in one field, as the map has them."""

    def __init__(self, store: RedisStore) -> None:
        import redis

        self._client: Any = redis.Redis.from_url(store.url)

    def empty(self) -> None:
        self._client.delete(TABLE)

    def write(self, rows: Rows) -> None:
        import msgpack

        pack = msgpack.Packer().pack
        pipeline = self._client.pipeline(transaction=True)
        for i in range(0, len(rows), FIELDS_A_COMMAND):
            part = rows[i : i + FIELDS_A_COMMAND]
            pipeline.hset(TABLE, mapping={word: pack(((count,), txid, None, None)) for word, count, txid in part})
        pipeline.execute()

    def close(self) -> None:
        self._client.close()
