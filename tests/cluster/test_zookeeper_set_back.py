"""A real ZooKeeper whose data an operator sets back to an old copy, or removes: the database's fence is ahead of it."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from examples import flight_delays
from stormline.runtime.cluster.in_process_engine import InProcessEngine
from stormline.runtime.cluster.submission import start_topology
from stormline.runtime.cluster.topology_handle import TopologyHandle
from stormline.runtime.errors import Fenced, SessionLost, TopologyFailed
from stormline.runtime.tasks.task_environment import registry_of
from stormline.runtime.zookeeper.store import ZooKeeperStateStore
from stormline.topology.compiler import compile_topology
from tests.kits.components import eventually
from tests.services.zookeeper_server import ZooKeeperServer


class Bench:
    """examples.flight_delays without Spark, its state in a ZooKeeper of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.zookeeper = ZooKeeperServer(folder / "zookeeper")
        self.copy = folder / "copy"
        self._handles: list[TopologyHandle] = []

    def land(self, name: str, flights: int = 30) -> None:
        """Let a file of flights arrive: ten make a batch."""
        rows = "\n".join(["UA,1,JFK,9"] * flights)
        (self.folder / f"{name}.csv").write_text(f"carrier,dep_delay,origin,hour\n{rows}\n")

    def start(self) -> TopologyHandle:
        plan = compile_topology(flight_delays.topology(), flight_delays.config)

        def open_store(on_lost: Any) -> ZooKeeperStateStore:
            return ZooKeeperStateStore.open(
                self.zookeeper.hosts, "/transactional", plan.topology_id, registry_of(plan), plan.describe(),
                on_lost=on_lost, session_timeout_ms=2000, connection_timeout_ms=5000,
            )  # fmt: skip

        handle = start_topology("flights", plan, open_store, InProcessEngine)
        self._handles.append(handle)
        return handle

    def run(self) -> int:
        handle = self.start()
        try:
            return handle.await_drained(60)
        finally:
            handle.kill()

    def keep_copy(self) -> None:
        """Copy the server's data, as a backup that is made while nothing runs."""
        self.zookeeper.kill()
        shutil.copytree(self.zookeeper.data_dir, self.copy)
        self.zookeeper.start()

    def set_back(self) -> None:
        """Put the copy in place of the data; nothing, where no copy was made."""
        self.zookeeper.kill()
        shutil.rmtree(self.zookeeper.data_dir)
        if self.copy.exists():
            shutil.copytree(self.copy, self.zookeeper.data_dir)
        self.zookeeper.start()

    def stored(self) -> list[str]:
        with closing(sqlite3.connect(self.folder / "flights.sqlite")) as db:
            return list(db.iterdump())

    def close(self) -> None:
        for handle in self._handles:
            handle.kill()
        self.zookeeper.kill()


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setenv("FLIGHT_DELAYS_CSV", str(tmp_path / "*.csv"))
    monkeypatch.setenv("FLIGHT_DELAYS_STORE", f"sqlite:{tmp_path / 'flights.sqlite'}")
    monkeypatch.setattr(flight_delays, "ROWS_PER_BATCH", 10)
    made = Bench(tmp_path)
    made.zookeeper.start()
    yield made
    made.close()


def test_a_snapshot_that_was_put_back_is_refused_by_the_databases_fence(bench: Bench) -> None:
    bench.land("a")
    assert bench.run() == 3
    bench.keep_copy()
    bench.land("b")
    assert bench.run() == 6
    before = bench.stored()
    bench.set_back()
    for _ in range(3):  # each raises the epoch: that does not help
        with pytest.raises(
            TopologyFailed, match=r"holds transaction [46] of .*(, and this is transaction 4|under another commit)"
        ):
            bench.run()
    assert bench.stored() == before


SET_BACK_BY_ONE = r"holds transaction 4 of topology .*(under another commit id|, and this is transaction 4 of epoch)"


def test_a_snapshot_that_lacks_just_the_last_transaction_is_refused_by_its_commit_id(bench: Bench) -> None:
    """Though the batch is the same again."""
    bench.land("a", 30)
    assert bench.run() == 3
    bench.keep_copy()
    bench.land("b", 5)
    assert bench.run() == 4
    before = bench.stored()
    bench.set_back()
    for _ in range(3):  # from the second run on the new batch is stored, as one of which effects may have happened
        with pytest.raises(TopologyFailed, match=SET_BACK_BY_ONE):
            bench.run()
    assert bench.stored() == before


def test_data_that_was_removed_is_refused_by_the_databases_fence(bench: Bench) -> None:
    bench.land("a")
    assert bench.run() == 3
    before = bench.stored()
    bench.set_back()
    with pytest.raises(
        TopologyFailed, match=r"holds transaction [13] of .*(, and this is transaction 1|under another commit)"
    ):
        bench.run()
    assert bench.stored() == before


@pytest.mark.parametrize("copied", [True, pytest.param(False, marks=pytest.mark.proof)])
def test_a_driver_that_lives_through_it_ends_and_changes_nothing(bench: Bench, copied: bool) -> None:
    bench.land("a")
    assert bench.run() == 3
    if copied:
        bench.keep_copy()
    bench.land("b")
    handle = bench.start()
    handle.await_drained(60)
    before = bench.stored()
    bench.set_back()
    bench.land("c")
    eventually(lambda: not handle.running, 60)
    assert isinstance(handle.error, (SessionLost, Fenced))
    assert bench.stored() == before
