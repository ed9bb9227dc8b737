"""Counts and sums the numbers that a ready source gives into a SQLite file, value + txid; made to be killed.

Environment: SOURCE_KIND, SOURCE_AT (a path, or a URL), and KAFKA_COUNT_DB, the file.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from stormline import IteratorTransactionalSpout, Topology, TransactionalTopologyBuilder
from stormline.spark import DataFrameTransactionalSpout, DataSourceTransactionalSpout
from stormline.spouts.redis import RedisStreamTransactionalSpout
from tests.topologies.kafka_count import PartialSums, Total
from tests.topologies.readers import Lines, LogReader, LogSource

ROWS = 250


class WideReader(LogReader):
    def latestOffset(self, start: Any, limit: Any) -> Any:
        return {"line": min(len(self.log.lines()), start["line"] + ROWS)}

    def partitions(self, start: Any, end: Any) -> Any:
        return [Lines(at, min(at + 100, end["line"])) for at in range(start["line"], end["line"], 100)]


class WideSource(LogSource):
    def streamReader(self, schema: Any) -> Any:
        return WideReader(self.options)


def numbers(start: Any) -> Iterator[Any]:
    with closing(sqlite3.connect(os.environ["SOURCE_AT"])) as db:
        yield from db.execute("SELECT id, n FROM numbers WHERE id > ? ORDER BY id", (start or 0,))


def spout() -> Any:
    kind, at = os.environ["SOURCE_KIND"], os.environ["SOURCE_AT"]
    if kind == "iterator":
        return IteratorTransactionalSpout(numbers, ["n"], ROWS)
    if kind == "redis":
        return RedisStreamTransactionalSpout(at, ["a", "b"], ["n"], types={"n": int}, entries_per_stream=ROWS)
    if kind == "data source":
        return DataSourceTransactionalSpout(WideSource, {"path": at})
    return DataFrameTransactionalSpout(lambda spark: spark.read.parquet(at), ["n"], ["n"], ROWS)


config = {"topology.max.spout.pending": 4, "storm.zookeeper.session.timeout": 2000}


def topology() -> Topology:
    builder = TransactionalTopologyBuilder("source-count", "spout", spout(), 2)
    builder.set_bolt("partial", PartialSums(), 2).shuffle_grouping("spout")
    builder.set_bolt("total", Total()).global_grouping("partial")
    return builder.build_topology()
