"""Structured Streaming into stores, its driver killed between the effect of a batch and its record."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import psycopg
import pytest

from stormline.state import PostgreSQLStore, SQLiteStore, Store, TransactionalMap
from stormline.state.inspection import Inspection
from tests.kits.components import eventually
from tests.services.postgresql import PostgreSQL

pytestmark = pytest.mark.proof

LIFE_SECS = 900.0
FILES = [{"cat": 1, "dog": 2}, {"cat": 10, "owl": 5}, {"cat": 100, "dog": 20}]
EXPECTED = {"cat": 111, "dog": 22, "owl": 5}


@pytest.fixture
def stores(postgresql: PostgreSQL, tmp_path: Path) -> dict[str, Store]:
    with psycopg.connect(postgresql.dsn(), autocommit=True) as db:
        db.execute("CREATE SCHEMA stream_sink")
    dsn = f"{postgresql.dsn()} options=-csearch_path=stream_sink"
    return {"sqlite": SQLiteStore(tmp_path / "words.sqlite"), "postgresql": PostgreSQLStore(dsn)}


def start(folder: Path, stores: dict[str, Store]) -> subprocess.Popen[bytes]:
    urls = [f"{name}={store}" for name, store in stores.items()]
    with (folder / "output.txt").open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.cluster.stream_sink_driver", str(folder), *urls],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )


def kill(driver: subprocess.Popen[bytes]) -> None:
    """End a driver, its JVM and its workers at once."""
    processes = [psutil.Process(driver.pid), *psutil.Process(driver.pid).children(recursive=True)]
    for process in processes:
        process.send_signal(signal.SIGKILL)
    driver.wait()
    psutil.wait_procs(processes[1:], timeout=60)


def words(store: Store) -> dict[str, int]:
    return dict(TransactionalMap(store, "words", key={"word": str}, value={"seen": int}).items())


def test_a_batch_that_is_replayed_after_its_effect_counts_once(stores: dict[str, Store], tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "hold").touch()
    for i, counts in enumerate(FILES):
        rows = [json.dumps({"word": word, "seen": seen}) for word, seen in counts.items()]
        path = tmp_path / "in" / f"{i}.json"
        path.write_text("\n".join(rows))
        os.utime(path, (1_000_000 + i, 1_000_000 + i))  # the order in which Spark reads them
    driver = start(tmp_path, stores)
    try:
        held = [tmp_path / name for name in stores]
        eventually(lambda: all(path.exists() for path in held) or driver.poll() is not None, LIFE_SECS)
        assert driver.poll() is None, (tmp_path / "output.txt").read_text()
    finally:
        kill(driver)
    for name, store in stores.items():
        assert words(store) == {"cat": 11, "dog": 2, "owl": 5}, "the effect of the second batch is there"
        assert sorted(path.name for path in (tmp_path / "checkpoints" / name / "commits").glob("[0-9]*")) == ["0"]
    (tmp_path / "hold").unlink()
    again = start(tmp_path, stores)
    assert again.wait(LIFE_SECS) == 0, (tmp_path / "output.txt").read_text()
    for name, store in stores.items():
        assert words(store) == EXPECTED, name
        with Inspection.of(store) as seen:
            assert seen.fences(name)[""].txid == 3
