"""Counts and sums the numbers of a Kafka topic into a SQLite file, value + txid; made to be killed.

Environment: KAFKA_COUNT_SERVERS, KAFKA_COUNT_TOPIC, KAFKA_COUNT_DB; the opaque spout where KAFKA_COUNT_OPAQUE is set.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import Any

from stormline import (
    BaseBatchBolt,
    BaseTransactionalBolt,
    Fields,
    ICommitter,
    Topology,
    TransactionalTopologyBuilder,
    Values,
)
from stormline.spouts.kafka import KafkaTransactionalSpout, OpaqueKafkaTransactionalSpout

SCHEMA = """
    CREATE TABLE IF NOT EXISTS total (id INTEGER PRIMARY KEY CHECK (id = 1), rows INTEGER, sum INTEGER, squares INTEGER,
    txid INTEGER)
"""


class PartialSums(BaseBatchBolt):
    """Counts and sums its share of a batch."""

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        self.batch_id, self.collector = batch_id, collector
        self.numbers: list[int] = []

    def execute(self, tup: Any) -> None:
        self.numbers.append(tup.get_integer(1))

    def finish_batch(self) -> None:
        squares = sum(number * number for number in self.numbers)
        self.collector.emit(Values(self.batch_id, len(self.numbers), sum(self.numbers), squares))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("id", "rows", "sum", "squares"))


class Total(BaseTransactionalBolt, ICommitter):
    """Adds a batch to the total, unless the total has its transaction already."""

    def prepare(self, conf: Any, context: Any, collector: Any, attempt: Any) -> None:
        self.txid = attempt.transaction_id
        self.sums = [0, 0, 0]

    def execute(self, tup: Any) -> None:
        self.sums = [before + tup.get_integer(i) for i, before in enumerate(self.sums, 1)]

    def finish_batch(self) -> None:
        with closing(sqlite3.connect(os.environ["KAFKA_COUNT_DB"], timeout=20)) as db, db:
            db.execute(SCHEMA)
            db.execute("INSERT OR IGNORE INTO total VALUES (1, 0, 0, 0, 0)")
            db.execute(
                "UPDATE total SET rows = rows + ?, sum = sum + ?, squares = squares + ?, txid = ? WHERE txid < ?",
                [*self.sums, self.txid, self.txid],
            )


def numbers(data: bytes) -> int:
    return int(data)


config = {"topology.max.spout.pending": 4, "storm.zookeeper.session.timeout": 2000}


def topology() -> Topology:
    servers, topic = os.environ["KAFKA_COUNT_SERVERS"], os.environ["KAFKA_COUNT_TOPIC"]
    kind = OpaqueKafkaTransactionalSpout if os.environ.get("KAFKA_COUNT_OPAQUE") else KafkaTransactionalSpout
    spout = kind(servers, topic, ["value"], value=numbers, records_per_partition=250)
    builder = TransactionalTopologyBuilder("kafka-count", "spout", spout, 2)
    builder.set_bolt("partial", PartialSums(), 2).shuffle_grouping("spout")
    builder.set_bolt("total", Total()).global_grouping("partial")
    return builder.build_topology()
