"""Sums numbers by key into a SQLite file, value + txid, by two committing tasks; made to be killed.

Environment: KEYED_SUMS_DB, the file. KEYED_SUMS_OPEN=prepare: open it in prepare, as ported bolts do.
KEYED_SUMS_KILL=POINT:TASK:N: kill this process by SIGKILL when that task comes to POINT in its N-th commit here, where
POINT is prepare, within (the database transaction) or after (it).
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
from collections import defaultdict
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from stormline import (
    BaseTransactionalBolt,
    Fields,
    ICommitter,
    MemoryTransactionalSpout,
    TopologyContext,
    TransactionalTopologyBuilder,
    TransactionAttempt,
    Tuple,
)
from stormline.topology.contracts import Collector, Conf
from stormline.topology.topology import Topology

TRANSACTIONS = 160
PARTITIONS = 2
ROWS_PER_PARTITION_AND_BATCH = 3
TASKS = 2
DRIVER_PID = "keyed_sums.driver_pid"
SCHEMA = """
    CREATE TABLE IF NOT EXISTS sums (key TEXT PRIMARY KEY, rows INTEGER, sum INTEGER, txid INTEGER);
    CREATE TABLE IF NOT EXISTS commits (
        txid INTEGER, task INTEGER, epoch INTEGER, attempt INTEGER, PRIMARY KEY (txid, task, attempt)
    );
"""

_rng = random.Random(1)
DATA = {
    partition: [
        (f"key {_rng.randrange(25)}", _rng.randrange(1_000_000))
        for _ in range(TRANSACTIONS * ROWS_PER_PARTITION_AND_BATCH)
    ]
    for partition in range(PARTITIONS)
}

_begun: defaultdict[tuple[str, int], set[int]] = defaultdict(set)


def connect() -> sqlite3.Connection:
    db = sqlite3.connect(os.environ["KEYED_SUMS_DB"], isolation_level=None, timeout=20, check_same_thread=False)
    db.executescript(SCHEMA)
    return db


class StoreSums(BaseTransactionalBolt, ICommitter):
    """Adds a batch to the sums of its keys: skips a key that has this txid, applies to one that has an earlier one."""

    def __init__(self) -> None:
        self.gathers = None if os.environ.get("KEYED_SUMS_OPEN") == "prepare" else ("sums",)

    def prepare(self, conf: Conf, context: TopologyContext, collector: Collector, batch_id: TransactionAttempt) -> None:
        self.attempt = batch_id
        self.epoch = context.epoch
        self.task = context.this_task_index
        self.driver_pid = conf[DRIVER_PID]
        self.sums: defaultdict[str, list[int]] = defaultdict(_zero)
        self.die_at("prepare")
        self.db = connect() if os.environ.get("KEYED_SUMS_OPEN") == "prepare" else None

    def execute(self, tup: Tuple) -> None:
        of_key = self.sums[tup["key"]]
        of_key[0] += 1
        of_key[1] += tup["number"]

    def finish_batch(self) -> None:
        txid = self.attempt.transaction_id
        with closing(self.db or connect()) as db, db:
            db.execute("BEGIN IMMEDIATE")
            (last,) = db.execute("SELECT coalesce(max(txid), 0) FROM commits WHERE task = ?", [self.task]).fetchone()
            assert txid in (last, last + 1), f"transaction {txid} commits after {last}"
            db.execute(
                "INSERT INTO commits VALUES (?, ?, ?, ?)", [txid, self.task, self.epoch, self.attempt.attempt_id]
            )
            for key, (rows, number) in self.sums.items():
                stored = db.execute("SELECT txid FROM sums WHERE key = ?", [key]).fetchone() or (0,)
                assert stored[0] <= txid, f"{key} has transaction {stored[0]}, later than {txid}"
                if stored[0] < txid:
                    db.execute(
                        "INSERT INTO sums VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET"
                        " rows = rows + excluded.rows, sum = sum + excluded.sum, txid = excluded.txid",
                        [key, rows, number, txid],
                    )
            self.die_at("within")
        self.die_at("after")

    def die_at(self, point: str) -> None:
        where, _, rest = os.environ.get("KEYED_SUMS_KILL", "").partition(":")
        if point != where or os.getpid() != self.driver_pid:
            return
        task, commits = map(int, rest.split(":"))
        begun = _begun[point, self.task]
        begun.add(self.attempt.transaction_id)
        if self.task == task and len(begun) == commits:
            os.kill(os.getpid(), signal.SIGKILL)


def _zero() -> list[int]:
    return [0, 0]


def config() -> Mapping[str, Any]:
    return {DRIVER_PID: os.getpid(), "topology.max.spout.pending": 8, "storm.zookeeper.session.timeout": 2000}


def topology() -> Topology:
    spout = MemoryTransactionalSpout(DATA, Fields("key", "number"), ROWS_PER_PARTITION_AND_BATCH)
    builder = TransactionalTopologyBuilder("keyed-sums", "spout", spout, PARTITIONS)
    builder.set_bolt("sums", StoreSums(), TASKS).fields_grouping("spout", Fields("key"))
    return builder.build_topology()
