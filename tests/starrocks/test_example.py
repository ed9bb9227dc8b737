"""examples.orders_to_starrocks: as it stands, and killed on the way, while StarRocks has bad days."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples import orders_to_starrocks as example
from stormline import InProcessCluster
from tests.cluster.driver_process import DriverProcess
from tests.kits.components import eventually
from tests.starrocks.cluster import Cluster
from tests.starrocks.conftest import Emulated
from tests.starrocks.faults import Fault
from tests.starrocks.servers import Servers

ROWS_PER_BATCH = 500
LIFE_SECS = 240.0


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Emulated]:
    """An emulator with the example's tables, and a folder for its files, in the environment."""
    cluster = Cluster(back_ends=2)
    for table, columns in example.TABLES.items():
        cluster.create_table("shop", table, columns.lower())
    servers = Servers(cluster)
    (tmp_path / "files").mkdir()
    monkeypatch.delenv("STARROCKS_PASSWORD", raising=False)
    monkeypatch.setenv("STARROCKS_URL", f"starrocks://root@{servers.front_address}/shop")
    monkeypatch.setenv("ORDERS_FILES", str(tmp_path / "files" / "*.csv"))
    yield Emulated(cluster, servers)
    servers.close()


def _check(shop: Emulated, events: int) -> None:
    """Each event is in its table once, transactions in their order, and nothing is left behind."""
    for table, wanted in (
        ("orders", [number for number in range(events) if number % 10]),
        ("returns", [number for number in range(events) if not number % 10 and number % 100]),
    ):
        numbers = [row[0] for row in shop.cluster.rows("shop", table)]
        assert sorted(numbers) == wanted
        assert [number // ROWS_PER_BATCH for number in numbers] == [number // ROWS_PER_BATCH for number in wanted]
    assert set(shop.cluster.states("shop").values()) <= {"VISIBLE", "ABORTED"}


def test_the_example_loads_each_event_once(shop: Emulated, tmp_path: Path) -> None:
    example.write(tmp_path / "files", files=2, events=1000)
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("orders-to-starrocks", example.config, example.topology())
        handle.await_drained(timeout_secs=120)
    _check(shop, 2000)
    assert example.report().startswith('orders: 1800 rows, 1800 of them different\n    a 5" notebook, lined ')


def test_the_example_runs_against_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its emulator starts, has the tables, and ends."""
    monkeypatch.delenv("STARROCKS_PASSWORD", raising=False)
    with example.emulator() as url:
        monkeypatch.setenv("STARROCKS_URL", url)
        assert example.report() == "orders: 0 rows, 0 of them different\nreturns: 0 rows, 0 of them different"


@pytest.mark.proof
def test_killed_and_resumed_while_starrocks_has_bad_days_each_event_is_there_once(
    shop: Emulated, tmp_path: Path
) -> None:
    """kill -9 of the driver on Spark, three times; answers get lost, both ends restart."""
    files, events, kills, rng = 8, 2500, 3, random.Random(16)
    example.write(tmp_path / "files", files, events)
    output = tmp_path / "output.txt"
    drivers: list[DriverProcess] = []

    def start() -> DriverProcess:
        env = {"PYTHONUNBUFFERED": "1"}
        drivers.append(DriverProcess("examples.orders_to_starrocks", tmp_path / "state", output, env))
        return drivers[-1]

    def visible() -> int:
        return len(shop.cluster.rows("shop", "orders"))

    try:
        for _ in range(kills):
            driver = start()
            for operation in rng.sample(("begin", "load", "prepare", "commit", "rollback", "get_load_state"), 3):
                shop.cluster.faults.add(Fault(operation, rng.choice(("before", "after")), skip=rng.randint(0, 9)))
            enough = visible() + rng.randint(1, 3000)
            assert driver.wait_until(lambda: visible() >= enough, LIFE_SECS), output.read_text()[-4000:]  # noqa: B023
            rng.choice((shop.cluster.restart_front_end, shop.cluster.restart_back_end))()
            time.sleep(rng.uniform(0, 0.2))
            driver.kill()
            assert visible() < files * events * 0.9, "all was loaded before the last kill: there must be more events"
        assert start().end(LIFE_SECS) == 0, output.read_text()[-4000:]
    finally:
        for driver in drivers:
            driver.close()
    eventually(lambda: set(shop.cluster.states("shop").values()) <= {"VISIBLE", "ABORTED"})
    _check(shop, files * events)
