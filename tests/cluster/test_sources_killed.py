"""kill -9 of a real driver, on Spark, that reads a ready source: each row counts once."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.cluster.killed_counts import counted_though_killed
from tests.services.redis import Redis

pytestmark = pytest.mark.proof

ROWS = 30_000
KILLS = 3


def iterator(folder: Path, server: Redis) -> str:
    path = folder / "numbers.sqlite"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE numbers (id INTEGER PRIMARY KEY, n INTEGER)")
        db.executemany("INSERT INTO numbers (n) VALUES (?)", [(n,) for n in range(ROWS)])
    return str(path)


def streams(folder: Path, server: Redis) -> str:
    url = server.url(449)
    with redis.Redis.from_url(url) as client:
        client.flushdb()
        pipeline = client.pipeline(transaction=False)
        for n in range(ROWS):
            pipeline.xadd("ab"[n % 2], {"n": n})
        pipeline.execute()
    return url


def log(folder: Path, server: Redis) -> str:
    path = folder / "numbers.log"
    path.write_text("\n".join(map(str, range(ROWS))))
    return str(path)


def parquet(folder: Path, server: Redis) -> str:
    import pyarrow as pa
    import pyarrow.parquet as pq

    shuffled = random.Random(15).sample(range(ROWS), ROWS)
    pq.write_table(pa.table({"n": pa.array(shuffled, pa.int64())}), folder / "numbers.parquet")
    return str(folder / "numbers.parquet")


@pytest.mark.parametrize(
    ("kind", "write"), [("iterator", iterator), ("redis", streams), ("data source", log), ("frame", parquet)]
)
def test_each_row_is_counted_once_though_the_driver_is_killed_on_the_way(
    kind: str, write: Any, redis_server: Redis, tmp_path: Path
) -> None:
    env = {"SOURCE_KIND": kind, "SOURCE_AT": write(tmp_path, redis_server)}
    counted = counted_though_killed("tests.topologies.source_count", tmp_path, env, KILLS, ROWS)
    assert counted == (ROWS, sum(range(ROWS)), sum(n * n for n in range(ROWS)))
