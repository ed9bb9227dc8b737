"""Databases: the servers that stores are measured on, as the tests start them, but with their syncs on."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measuring.recorder import NotAvailable
from stormline.state import MySQLStore, PostgreSQLStore, RedisStore, SQLiteStore

if TYPE_CHECKING:
    from tests.services.mariadb import MariaDB
    from tests.services.postgresql import PostgreSQL
    from tests.services.redis import Redis

TIMEOUT_SECS = 60.0
"""Nothing here is to be replayed because the machine is busy."""
POSTGRESQL = {
    "fsync": "on",
    "shared_buffers": "256MB",
    "max_wal_size": "4GB",
    "max_prepared_transactions": "1024",
    "lock_timeout": "60s",
    "idle_in_transaction_session_timeout": "60s",
}
MARIADB = (
    "--innodb-flush-log-at-trx-commit=1",
    "--innodb-buffer-pool-size=256M",
    "--innodb-log-file-size=512M",
    "--innodb-data-file-path=ibdata1:12M:autoextend",
)


class Databases:
    """Starts each server when it is first needed; each store that it gives is an empty database."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._postgresql: PostgreSQL | None = None
        self._mariadb: MariaDB | None = None
        self._redis: Redis | None = None
        self._numbers = itertools.count(1)

    @property
    def folder(self) -> Path:
        """Where files may be written until the end."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="stormline-bench-db-"))
        return self._folder

    def sqlite(self) -> SQLiteStore:
        """Return a store in a new file."""
        return SQLiteStore(self.folder / f"{next(self._numbers)}.sqlite", TIMEOUT_SECS)

    def postgresql(self) -> PostgreSQLStore:
        """Return a store in a schema of its own; its DSN is there for others, too."""
        from tests.services.postgresql import PostgreSQL, binaries

        if self._postgresql is None:
            if binaries() is None:
                raise NotAvailable("PostgreSQL is not installed: sh scripts/check_postgresql.sh")
            self._postgresql = PostgreSQL(self.folder / "postgresql.log", {}, **POSTGRESQL)
            self._postgresql.create()
        import psycopg

        schema = f"bench_{next(self._numbers)}"
        with psycopg.connect(self._postgresql.dsn(), autocommit=True) as db:
            db.execute(f"CREATE SCHEMA {schema}".encode())
        return PostgreSQLStore(f"{self._postgresql.dsn()} options=-csearch_path={schema}", timeout_secs=TIMEOUT_SECS)

    def mariadb(self) -> MySQLStore:
        """Return a store in a database of its own."""
        from tests.services.mariadb import MariaDB, binary

        if self._mariadb is None:
            if binary() is None:
                raise NotAvailable("MariaDB is not installed: sh scripts/check_mariadb.sh")
            self._mariadb = MariaDB(self.folder / "mariadb.log", None, *MARIADB)
            self._mariadb.create()
        import pymysql

        name = f"bench_{next(self._numbers)}"
        with (
            pymysql.connect(host="127.0.0.1", port=self._mariadb.port, user="stormline") as db,
            db.cursor() as cursor,
        ):
            cursor.execute(f"CREATE DATABASE {name}")
        return MySQLStore(self._mariadb.url(name), timeout_secs=TIMEOUT_SECS)

    def redis(self) -> RedisStore:
        """Return a store in a database of its own."""
        from tests.services.redis import Redis, binary

        if self._redis is None:
            if binary() is None:
                raise NotAvailable("Redis is not installed: sh scripts/check_redis.sh")
            self._redis = Redis(self.folder / "redis.log")
            self._redis.create()
        return RedisStore(f"redis://127.0.0.1:{self._redis.port}/{next(self._numbers)}", timeout_secs=TIMEOUT_SECS)

    def close(self) -> None:
        """End the servers."""
        for server in (self._postgresql, self._mariadb, self._redis):
            if server is not None:
                server.stop()
        self._postgresql = self._mariadb = self._redis = None

    def remove_files(self) -> None:
        """Remove what was written."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
