"""Databases of tests on real servers, each behind a proxy: what all three do, said in the words of each."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from typing import Any

import psycopg
import redis

from stormline.state import MySQLStore, PostgreSQLStore, RedisStore, Store
from tests.kits.bad_days import run
from tests.kits.components import eventually
from tests.services.database_server import DatabaseServer
from tests.services.mariadb import MariaDB
from tests.services.postgresql import PostgreSQL
from tests.services.proxy import Protocol, Proxy
from tests.services.redis import Redis

_numbers = itertools.count()
_redis_numbers = itertools.count(300)


class StoreDatabase(ABC):
    """A database of one test.

    Args:
        server: where it is.
    """

    commits: bytes
    """What stands in a request that commits."""
    server: DatabaseServer

    def __init__(self) -> None:
        self.proxy = Proxy(self.server.port, Protocol(self.commits))

    @abstractmethod
    def store(self, timeout_secs: float = 30.0) -> Store:
        """Return the store, behind the proxy."""

    @abstractmethod
    def direct(self) -> Store:
        """Return the store, past the proxy."""

    @abstractmethod
    def close_connections(self) -> None:
        """Have the server close all connections of the store; it has when this returns."""

    @abstractmethod
    def empty(self) -> None:
        """Remove all that is in it."""

    def close(self) -> None:
        """Let go of it."""
        self.proxy.close()


class PostgreSQLDatabase(StoreDatabase):
    commits = b"COMMIT\0"
    table_options = ""

    def __init__(self, server: PostgreSQL) -> None:
        self.server = self.postgresql = server
        self.schema = f"bad_{next(_numbers)}"
        super().__init__()
        self.sql(f"CREATE SCHEMA {self.schema}")

    def dsn(self, port: int | None = None, user: str = "chaos", more: str = "") -> str:
        return f"{self.postgresql.dsn(port, user)} options='-csearch_path={self.schema} {more}'"

    def store(self, timeout_secs: float = 30.0) -> PostgreSQLStore:
        return PostgreSQLStore(self.dsn(self.proxy.port), timeout_secs=timeout_secs)

    def direct(self) -> PostgreSQLStore:
        return PostgreSQLStore(self.dsn())

    def sql(self, text: str) -> list[Any]:
        with psycopg.connect(self.dsn(), autocommit=True) as db:
            return run(db, text)

    def connections(self) -> list[Any]:
        """Return the processes that serve the store's connections."""
        return self.sql("SELECT pid FROM pg_stat_activity WHERE application_name = 'stormline'")

    def close_connections(self) -> None:
        numbers = self.connections()
        assert numbers
        for (number,) in numbers:
            self.sql(f"SELECT pg_terminate_backend({number}, 60000)")

    def empty(self) -> None:
        self.sql(f"DROP SCHEMA {self.schema} CASCADE")
        self.sql(f"CREATE SCHEMA {self.schema}")


class MariaDBDatabase(StoreDatabase):
    commits = b"\x03COMMIT"
    table_options = "ENGINE=InnoDB DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_nopad_bin"

    def __init__(self, server: MariaDB) -> None:
        self.server = self.mariadb = server
        self.name = f"bad_{next(_numbers)}"
        super().__init__()
        with server.connected() as db:
            run(db, f"CREATE DATABASE {self.name}")

    def store(self, timeout_secs: float = 30.0) -> MySQLStore:
        return MySQLStore(self.mariadb.url(self.name, self.proxy.port), timeout_secs=timeout_secs)

    def direct(self) -> MySQLStore:
        return MySQLStore(self.mariadb.url(self.name))

    def sql(self, text: str) -> list[Any]:
        with self.mariadb.connected(database=self.name) as db:
            return run(db, text)

    def connections(self) -> list[Any]:
        """Return the numbers of the store's connections."""
        with self.mariadb.connected() as db:
            return run(db, f"SELECT id FROM information_schema.processlist WHERE db = '{self.name}'")

    def close_connections(self) -> None:
        numbers = self.connections()
        assert numbers
        for (number,) in numbers:
            self.sql(f"KILL {number}")
        eventually(lambda: not self.connections())

    def empty(self) -> None:
        self.sql(f"DROP DATABASE {self.name}")
        with self.mariadb.connected() as db:
            run(db, f"CREATE DATABASE {self.name}")

    def close(self) -> None:
        super().close()
        self.sql(f"DROP DATABASE {self.name}")


class RedisDatabase(StoreDatabase):
    commits = b"EXEC\r\n"

    def __init__(self, server: Redis) -> None:
        self.server = self.redis = server
        self.number = next(_redis_numbers)
        super().__init__()

    def store(self, timeout_secs: float = 30.0) -> RedisStore:
        return RedisStore(self.redis.url(self.number, self.proxy.port), timeout_secs=timeout_secs)

    def direct(self) -> RedisStore:
        return RedisStore(self.redis.url(self.number))

    def client(self) -> Any:
        return redis.Redis.from_url(self.redis.url(self.number))

    def close_connections(self) -> None:
        with self.client() as client:
            assert client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

    def empty(self) -> None:
        with self.client() as client:
            client.flushdb()
