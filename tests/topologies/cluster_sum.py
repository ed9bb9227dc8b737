"""Sums numbers into SQLite as value+txid, on a cluster; says which executors took part.

The environment variable SUM_ROWS says how many rows there are: more of them the next time. `sum.database` names
the database; `sum.poison` is a row that a bolt fails on, and lets slip what `sum.password` refers to.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from contextlib import closing
from typing import Any

from stormline import (
    BaseBasicBolt,
    BaseTransactionalBolt,
    Fields,
    ICommitter,
    MemoryTransactionalSpout,
    TopologyContext,
    TransactionalTopologyBuilder,
    TransactionAttempt,
    Tuple,
    resolve_secret,
)
from stormline.topology.contracts import Collector, Conf
from stormline.topology.streams import OutputFieldsDeclarer
from stormline.topology.topology import Topology
from tests.topologies.cluster_sum_rows import doubled

config: dict[str, Any] = {"topology.max.spout.pending": 4}


class Double(BaseBasicBolt):
    def prepare(self, conf: Conf, context: TopologyContext) -> None:
        self.poison = conf.get("sum.poison")
        self.password = resolve_secret(conf["sum.password"]) if "sum.password" in conf else ""

    def execute(self, tup: Tuple, collector: Collector) -> None:
        number = tup.get_integer(1)
        if number == self.poison:
            logging.getLogger("stormline").warning("told of row %d: %s", number, self.password)
            try:
                raise KeyError(self.password)
            except KeyError as error:
                raise ValueError(f"the row {number} is poisoned") from error
        # An executor works in a directory of its worker.
        collector.emit([tup.get_value(0), doubled(number), os.getcwd()])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("attempt", "number", "directory"))


class Total(BaseTransactionalBolt, ICommitter):
    gathers = ("total", "directories")

    def prepare(self, conf: Conf, context: TopologyContext, collector: Collector, batch_id: TransactionAttempt) -> None:
        self.database = conf["sum.database"]
        self.txid = batch_id.transaction_id
        self.total = 0
        self.directories: set[str] = set()

    def execute(self, tup: Tuple) -> None:
        self.total += tup.get_integer(1)
        self.directories.add(tup.get_string(2))

    def finish_batch(self) -> None:
        with closing(sqlite3.connect(self.database)) as database, database:
            database.execute("create table if not exists total (value integer, txid integer)")
            database.execute("create table if not exists executors (directory text primary key)")
            value, txid = database.execute("select value, txid from total").fetchone() or (0, 0)
            if txid < self.txid:
                database.execute("delete from total")
                database.execute("insert into total values (?, ?)", (value + self.total, self.txid))
            database.executemany("insert or ignore into executors values (?)", [(d,) for d in self.directories])


def topology() -> Topology:
    rows = range(int(os.environ.get("SUM_ROWS", "60")))
    partitions = {partition: list(rows[partition::2]) for partition in range(2)}
    builder = TransactionalTopologyBuilder(
        "cluster-sum", "rows", MemoryTransactionalSpout(partitions, Fields("number"), 5), 2
    )
    builder.set_bolt("double", Double(), 4).shuffle_grouping("rows")
    builder.set_bolt("total", Total()).global_grouping("double")
    return builder.build_topology()
