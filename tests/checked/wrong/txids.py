"""Committers that add at every commit, and so twice where a transaction commits again."""

import sqlite3
from collections import Counter
from typing import NamedTuple

import redis

from stormline import BaseBasicBolt, BaseTransactionalBolt, Fields, ICommitter, TransactionalTopologyBuilder, Values
from tests.checked import spouts

DATABASE = {}
TOTALS = Counter()
ROWS = []


class Stored(NamedTuple):
    count: int
    txid: int


class Base(BaseTransactionalBolt, ICommitter):
    def prepare(self, conf, context, collector, batch_id):
        self.collector, self.attempt, self.counts = collector, batch_id, Counter()

    def execute(self, tup):
        self.counts[tup[1]] += 1


class NeverLooks(Base):
    def finish_batch(self):
        for word, count in self.counts.items():
            TOTALS[word] += count  # ! unchecked-txid
        self.collector.emit(Values(self.attempt, len(TOTALS)))

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("id", "words"))


class StoresAndNeverCompares(Base):
    def finish_batch(self):
        for word, count in self.counts.items():
            before = DATABASE.get(word)
            DATABASE[word] = Stored(  # ! unchecked-txid
                (before.count if before else 0) + count, self.attempt.transaction_id
            )


class ComparesTheAttempt(Base):
    def finish_batch(self):
        for word, count in self.counts.items():
            value = DATABASE.get(word)
            if value is None or value.txid != self.attempt:  # ! unchecked-txid
                DATABASE[word] = Stored((value.count if value else 0) + count, self.attempt.transaction_id)


class IntoSql(Base):
    def prepare(self, conf, context, collector, batch_id):
        super().prepare(conf, context, collector, batch_id)
        self.db = sqlite3.connect(conf["db"])

    def finish_batch(self):
        with self.db:
            for word, count in self.counts.items():
                self.db.execute("UPDATE counts SET n = n + ? WHERE word = ?", (count, word))  # ! unchecked-txid


class ReplacesWithTheSum(Base):
    def finish_batch(self):
        with sqlite3.connect("words.sqlite") as db:
            row = db.execute("SELECT n FROM total").fetchone()
            total = (row[0] if row else 0) + sum(self.counts.values())
            db.execute("INSERT OR REPLACE INTO total (id, n) VALUES (1, ?)", (total,))  # ! unchecked-txid


class IntoRedis(Base):
    def finish_batch(self):
        client = redis.Redis()
        self._add(client)
        print("committed", self.attempt)

    def _add(self, client):
        for word, count in self.counts.items():
            client.incrby(word, count)  # ! unchecked-txid


class Downstream(BaseBasicBolt):
    def execute(self, tup, collector):
        ROWS.append(tup[1])  # ! unchecked-txid


def topology():
    builder = TransactionalTopologyBuilder("txids", "words", spouts.words(), 1)
    bolts = [NeverLooks(), StoresAndNeverCompares(), ComparesTheAttempt(), IntoSql(), IntoRedis(), ReplacesWithTheSum()]
    for index, bolt in enumerate(bolts):
        builder.set_bolt(f"store-{index}", bolt).global_grouping("words")
    builder.set_bolt("downstream", Downstream()).global_grouping("store-0")
    return builder
