"""Sums numbers into a SQLite file, as value + txid; the file's path and the pace come from the environment.

NUMBERS_DB: the file; one with the suffix .begun beside it shows that a commit has begun.
NUMBERS_COUNT: numbers of each of two partitions (default 40), taken two at a time.
NUMBERS_COMMIT_SECS: how long each commit takes (default 0). NUMBERS_FAIL_AT: the number at which the bolt raises.
NUMBERS_HANG: the txid in which such a task hangs, once: a file with the suffix .hung beside the other one shows it.
NUMBERS_WARN: whether its tasks, which execute in Spark's Python workers, warn of each batch on standard error.
"""

import os
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from stormline import (
    BaseBatchBolt,
    BaseTransactionalBolt,
    Config,
    Fields,
    ICommitter,
    MemoryTransactionalSpout,
    TransactionalTopologyBuilder,
    Tuple,
)

COUNT = int(os.environ.get("NUMBERS_COUNT", "40"))


class Add(BaseBatchBolt):
    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        self.collector, self.id, self.sum = collector, batch_id, 0

    def execute(self, tuple: Tuple) -> None:
        number = tuple.get_integer(1)
        if str(number) == os.environ.get("NUMBERS_FAIL_AT"):
            raise ZeroDivisionError(f"cannot add {number}")
        self.sum += number

    def finish_batch(self) -> None:
        if "NUMBERS_WARN" in os.environ:
            sys.stderr.write(f"warned of {self.id}\n")  # at once: the other worker may write, too
        hung = Path(os.environ["NUMBERS_DB"] + ".hung")
        if os.environ.get("NUMBERS_HANG") == str(self.id.transaction_id) and not hung.exists():
            hung.touch()
            time.sleep(600)
        self.collector.emit([self.id, self.sum])

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("id", "sum"))


class Store(BaseTransactionalBolt, ICommitter):
    gathers = ("sum",)

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        self.id, self.sum = batch_id, 0

    def execute(self, tuple: Tuple) -> None:
        self.sum += tuple.get_integer(1)

    def finish_batch(self) -> None:
        Path(os.environ["NUMBERS_DB"] + ".begun").touch()
        time.sleep(float(os.environ.get("NUMBERS_COMMIT_SECS", "0")))
        with closing(sqlite3.connect(os.environ["NUMBERS_DB"])) as db, db:
            db.execute("create table if not exists sums (txid integer primary key, sum integer)")
            db.execute("insert or ignore into sums values (?, ?)", (self.id.transaction_id, self.sum))

    def declare_output_fields(self, declarer: Any) -> None:
        pass


def topology() -> TransactionalTopologyBuilder:
    rows = {0: list(range(COUNT)), 1: list(range(COUNT, 2 * COUNT))}
    builder = TransactionalTopologyBuilder("numbers", "spout", MemoryTransactionalSpout(rows, ["number"], 2), 2)
    builder.set_bolt("add", Add(), 2).shuffle_grouping("spout")
    builder.set_bolt("store", Store()).global_grouping("add")
    return builder


def config() -> Config:
    conf = Config()
    conf.set_max_spout_pending(4)
    return conf


def report() -> str:
    with closing(sqlite3.connect(os.environ["NUMBERS_DB"])) as db:
        ((count, total),) = db.execute("select count(*), sum(sum) from sums")
    return f"{count} sums make {total}"
