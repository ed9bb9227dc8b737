from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.lives import Lives
from tests.services.postgresql import PostgreSQL, binaries
from tests.services.zookeeper_backend import ZooKeeperBackend
from tests.services.zookeeper_server import ZooKeeperServer


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
    if binaries() is None:
        why = "PostgreSQL is not installed: sh scripts/check_postgresql.sh"
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)


@pytest.fixture(scope="module")
def postgresql(needs_postgresql: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgreSQL]:
    """A real PostgreSQL with the tables of the chaos runs."""
    server = PostgreSQL(tmp_path_factory.mktemp("postgresql") / "log", {})
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
