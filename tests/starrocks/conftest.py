"""The database of the contract tests: the emulator's, or, where STARROCKS_URL is set, a real server's.

A real one needs the tables of `TABLES`; docs/starrocks.md has the statements. STARROCKS_PASSWORD may hold the password.
"""

from __future__ import annotations

import base64
import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection
from typing import Any

import pytest

from stormline.state.starrocks import StarRocks
from stormline.state.starrocks.client import StreamLoadClient
from tests.starrocks.cluster import Cluster
from tests.starrocks.servers import Servers

URL, PASSWORD = "STARROCKS_URL", "STARROCKS_PASSWORD"
TABLES = {
    "stormline_orders": "run varchar(32) not null,order_id bigint not null,item varchar(50),amount int",
    "stormline_clicks": "run varchar(32) not null,order_id bigint not null,item varchar(50),amount int",
}
COLUMNS = ("run", "order_id", "item", "amount")


@dataclass
class Database:
    """A database to load into; what one test loads has a `run` of its own."""

    server: StarRocks
    run: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    labels: int = 0

    @property
    def client(self) -> StreamLoadClient:
        """A fresh client."""
        return self.server.open_client()

    def label(self) -> str:
        """Return a label that nobody has."""
        self.labels += 1
        return f"stormline-{self.run}-{self.labels}"

    def rows(self, table: str = "stormline_orders") -> list[list[Any]]:
        """Return what this test's rows hold behind `run`, in order, as a query sees them."""
        found = sorted(query(self.server, table), key=lambda row: row[1])
        return [row[1:] for row in found if row[0] == self.run]

    def csv(self, *rows: tuple[Any, ...]) -> bytes:
        """Return rows as CSV with tabs."""
        return "".join("\t".join(map(str, (self.run, *row))) + "\n" for row in rows).encode()


def query(server: StarRocks, table: str) -> list[list[Any]]:
    """Return all rows of a table by StarRocks' SQL over HTTP (3.2 and newer)."""
    secret = os.environ.get(PASSWORD, "") if server.password else ""
    user = base64.b64encode(f"{server.user}:{secret}".encode()).decode()
    connection = HTTPConnection(*server.front_ends[0], timeout=60)
    connection.request(
        "POST",
        f"/api/v1/catalogs/default_catalog/databases/{server.database}/sql",
        json.dumps({"query": f"SELECT * FROM {table};"}),
        {"Authorization": f"Basic {user}", "Content-Type": "application/json"},
    )
    response = connection.getresponse()
    lines = response.read().decode().splitlines()
    connection.close()
    assert response.status == 200, lines
    return [json.loads(line)["data"] for line in lines if '"data"' in line]


@dataclass
class Emulated:
    """An emulator of one test's own, whose clock and faults it may have."""

    cluster: Cluster
    servers: Servers

    def server(self, **how: Any) -> StarRocks:
        """Return where it is."""
        return StarRocks(f"starrocks://root@{self.servers.front_address}/shop", timeout_secs=30, **how)

    def database(self, **how: Any) -> Database:
        """Return it as the contract tests have it."""
        return Database(self.server(**how))


@pytest.fixture
def emulated() -> Iterator[Emulated]:
    """An emulator with the tables of the contract tests."""
    cluster = Cluster(back_ends=2)
    for name, columns in TABLES.items():
        cluster.create_table("shop", name, columns)
    servers = Servers(cluster)
    yield Emulated(cluster, servers)
    servers.close()


@pytest.fixture
def database(request: pytest.FixtureRequest) -> Database:
    """The real server's, or an emulator's."""
    if os.environ.get(URL):
        password = f"env:{PASSWORD}" if os.environ.get(PASSWORD) else ""
        return Database(StarRocks(os.environ[URL], password))
    emulated: Emulated = request.getfixturevalue("emulated")
    return emulated.database()
