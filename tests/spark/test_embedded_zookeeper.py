from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark import SparkContext

from stormline.runtime.cluster import embedded_zookeeper
from stormline.runtime.cluster.embedded_zookeeper import EmbeddedZooKeeper
from stormline.runtime.errors import StateCorrupt, StateDirGone, StateDirInUse
from stormline.runtime.state.state_store import Put
from stormline.runtime.zookeeper.store import ZooKeeperStateStore
from stormline.topology.errors import StormlineError
from tests.kits.components import eventually


def open_store(zookeeper: EmbeddedZooKeeper) -> ZooKeeperStateStore:
    return ZooKeeperStateStore.open(zookeeper.hosts, "/transactional", "topo", session_timeout_ms=1000)


@pytest.fixture
def zookeeper(spark: SparkContext, tmp_path: Path) -> Iterator[EmbeddedZooKeeper]:
    zookeeper = EmbeddedZooKeeper(spark, tmp_path / "state")
    yield zookeeper
    zookeeper.stop()


@pytest.fixture
def other_driver(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.spark.embedded_driver", str(tmp_path / "state")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == "written\n"
        yield driver
        driver.kill()


def test_the_data_outlives_the_server(spark: SparkContext, zookeeper: EmbeddedZooKeeper) -> None:
    for epoch in (1, 2):
        store = open_store(zookeeper)
        assert store.epoch == epoch
        store.write([Put("a", epoch)])
        store.close()
        zookeeper.stop()
        zookeeper.stop()
        zookeeper = EmbeddedZooKeeper(spark, zookeeper.data_dir)
    store = open_store(zookeeper)
    assert store.get("a") == 2
    store.close()
    zookeeper.stop()


def test_snapshots_are_on_disk_before_anything_leans_on_them(
    spark: SparkContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def spy(descriptor: int) -> None:
        synced.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", spy)
    zookeeper = EmbeddedZooKeeper(spark, tmp_path / "state")
    assert synced == ["snapshot.0", "version-2"]
    zookeeper.purge()
    assert synced == ["snapshot.0", "version-2"] * 2
    zookeeper.stop()


def test_a_state_that_lost_its_snapshots_is_refused_in_one_sentence(
    spark: SparkContext, zookeeper: EmbeddedZooKeeper
) -> None:
    """As after a power cut, where the snapshot was not on disk yet."""
    store = open_store(zookeeper)
    store.write([Put("a", 1)])
    store.close()
    zookeeper.stop()
    for snapshot in (zookeeper.data_dir / "version-2").glob("snapshot.*"):
        snapshot.write_bytes(b"")
    for _ in range(2):
        with pytest.raises(
            StateCorrupt, match=r"cannot read the state directory .*/state: .*; nothing was changed\. Put"
        ):
            EmbeddedZooKeeper(spark, zookeeper.data_dir)


def test_a_server_that_could_not_sync_serves_no_more_when_its_directory_is_free(
    spark: SparkContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[EmbeddedZooKeeper] = []

    def sync(zookeeper: EmbeddedZooKeeper) -> None:
        failed.append(zookeeper)
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(EmbeddedZooKeeper, "_sync", sync)
        with pytest.raises(OSError, match="Input/output error"):
            EmbeddedZooKeeper(spark, tmp_path)
    assert not failed[0]._server.isRunning()
    EmbeddedZooKeeper(spark, tmp_path).stop()


def test_one_directory_is_served_once(spark: SparkContext, zookeeper: EmbeddedZooKeeper) -> None:
    with pytest.raises(StateDirInUse, match=rf"state directory {zookeeper.data_dir} is in use by this process; stop"):
        EmbeddedZooKeeper(spark, zookeeper.data_dir)
    store = open_store(zookeeper)
    store.write([Put("a", 1)])
    store.close()


def test_another_process_keeps_its_directory_until_it_is_killed_and_leaves_its_data(
    spark: SparkContext, tmp_path: Path, other_driver: subprocess.Popen[str]
) -> None:
    with pytest.raises(
        StateDirInUse, match=r"/state is in use by another process \(\d+, of user .*java.*\), and was .* 0\.3 s; stop"
    ):
        EmbeddedZooKeeper(spark, tmp_path / "state", lock_wait_secs=0.3)
    other_driver.kill()
    zookeeper = EmbeddedZooKeeper(spark, tmp_path / "state")  # waits for the JVM of the killed driver to end
    store = open_store(zookeeper)
    assert (store.epoch, store.get("a")) == (2, 1)
    store.close()
    zookeeper.stop()


def test_the_disk_does_not_fill_up(spark: SparkContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded_zookeeper, "LOG_WRITES_MAX", 20)
    monkeypatch.setattr(embedded_zookeeper, "PURGE_SECS", 0.05)
    zookeeper = EmbeddedZooKeeper(spark, tmp_path / "state")
    store = open_store(zookeeper)
    for n in range(600):
        store.write([Put("a", n)])

    def few() -> bool:
        names = os.listdir(tmp_path / "state" / "version-2")
        return len([name for name in names if name.startswith("snapshot.")]) <= 5 and len(names) <= 12

    eventually(few)
    store.close()
    zookeeper.stop()
    zookeeper = EmbeddedZooKeeper(spark, tmp_path / "state")
    store = open_store(zookeeper)
    assert store.get("a") == 599
    store.close()
    zookeeper.stop()


def test_a_directory_that_is_deleted_under_its_server_ends_all_writing_and_is_told_once(
    zookeeper: EmbeddedZooKeeper,
) -> None:
    lost: list[StormlineError] = []
    store = ZooKeeperStateStore.open(
        zookeeper.hosts, "/transactional", "topo", session_timeout_ms=1000, on_lost=lost.append, server=zookeeper
    )
    idle = ZooKeeperStateStore.open(zookeeper.hosts, "/transactional", "idle", on_lost=lost.append, server=zookeeper)
    store.write([Put("a", 1)])
    shutil.rmtree(zookeeper.data_dir)
    with pytest.raises(StateDirGone, match=r"^state directory .*/state was deleted, moved or replaced while"):
        store.write([Put("a", 2)])  # the server acknowledges it
    eventually(lambda: len(lost) == 2)
    with pytest.raises(StateDirGone, match=r"Put a copy of the directory in its place; without one the next run"):
        idle.write([])
    with pytest.raises(StateDirGone):
        ZooKeeperStateStore.open(zookeeper.hosts, "/transactional", "another", server=zookeeper)
