from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from tests.cluster.lives import Lives
from tests.cluster.store_databases import MariaDBDatabase, PostgreSQLDatabase, RedisDatabase, StoreDatabase
from tests.services.database_server import DatabaseServer
from tests.services.mariadb import MariaDB
from tests.services.mariadb import binary as mariadb_binary
from tests.services.postgresql import PostgreSQL, binaries
from tests.services.redis import Redis
from tests.services.redis import binary as redis_binary
from tests.services.zookeeper_backend import ZooKeeperBackend
from tests.services.zookeeper_server import ZooKeeperServer

AnyServer = TypeVar("AnyServer", bound=DatabaseServer)


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """A real ZooKeeper, the same for all tests; each takes a root of its own."""
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture
def lives(tmp_path: Path) -> Iterator[Lives]:
    """Drivers one after another; what they start has ended when the test has."""
    made = Lives(tmp_path)
    yield made
    made.close()


@pytest.fixture(scope="session")
def needs_postgresql() -> None:
    """Skip where PostgreSQL is not installed, and fail there in CI."""
    need_postgresql()


@pytest.fixture(scope="session")
def postgresql(needs_postgresql: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgreSQL]:
    """A real PostgreSQL with the tables of the chaos runs, the same for all tests."""
    yield from _created(PostgreSQL(tmp_path_factory.mktemp("postgresql") / "log"))


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaDB]:
    """A real MariaDB, the same for all tests; each takes a database of its own."""
    need_mariadb()
    yield from _created(MariaDB(tmp_path_factory.mktemp("mariadb") / "log"))


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    """A real Redis, the same for all tests; each takes a database of its own."""
    _need("Redis", redis_binary())
    yield from _created(Redis(tmp_path_factory.mktemp("redis") / "log"))


def need_postgresql() -> None:
    """Skip where PostgreSQL is not installed, and fail there in CI."""
    _need("PostgreSQL", binaries())


def need_mariadb() -> None:
    """Skip where MariaDB is not installed, and fail there in CI."""
    _need("MariaDB", mariadb_binary())


def _need(name: str, found: object) -> None:
    """Skip where a server is not installed, and fail there in CI."""
    if found is None:
        why = f"{name} is not installed: sh scripts/check_{name.lower()}.sh"
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)


def _created(server: AnyServer) -> Iterator[AnyServer]:
    try:
        server.create()
        yield server
    finally:
        server.stop()


@pytest.fixture
def backend(zookeeper: ZooKeeperServer) -> Iterator[ZooKeeperBackend]:
    """A topology's place in it."""
    backend = ZooKeeperBackend(zookeeper.hosts)
    yield backend
    backend.stop()


@pytest.fixture
def on_postgresql(postgresql: PostgreSQL) -> Iterator[PostgreSQLDatabase]:
    """A database of the test's own on a real PostgreSQL."""
    made = PostgreSQLDatabase(postgresql)
    yield made
    made.close()


@pytest.fixture
def on_mariadb(mariadb: MariaDB) -> Iterator[MariaDBDatabase]:
    """A database of the test's own on a real MariaDB."""
    made = MariaDBDatabase(mariadb)
    yield made
    made.close()


@pytest.fixture
def on_redis(redis_server: Redis) -> Iterator[RedisDatabase]:
    """A database of the test's own on a real Redis."""
    made = RedisDatabase(redis_server)
    yield made
    made.close()


@pytest.fixture(params=["postgresql", "mariadb", "redis"])
def database(request: pytest.FixtureRequest) -> StoreDatabase:
    """A database of the test's own, on each of the servers."""
    made: StoreDatabase = request.getfixturevalue(f"on_{request.param}")
    return made
