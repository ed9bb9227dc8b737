"""Committers that look at the txid, each in its way; and what comes out the same a second time."""

import contextlib
import functools
import sqlite3
import threading
from collections import Counter
from typing import NamedTuple

import redis
from shoplib import registry

from stormline import BaseBasicBolt, BaseTransactionalBolt, Fields, ICommitter, TransactionalTopologyBuilder, Values
from stormline.state import SQLiteStore
from tests.checked import spouts

DATABASE = {}
RECORDED = []
LATEST = {}


class Stored(NamedTuple):
    count: int
    txid: int


class Base(BaseTransactionalBolt, ICommitter):
    lock = threading.Lock()
    totals = Counter()

    def prepare(self, conf, context, collector, batch_id):
        self.context, self.collector, self.attempt, self.counts = context, collector, batch_id, Counter()

    def execute(self, tup):
        self.counts[tup[1]] += 1


class Compares(Base):
    def finish_batch(self):
        with self.lock:
            for word, count in self.counts.items():
                value = DATABASE.get(word)
                if value is None or value.txid != self.attempt.transaction_id:
                    value = Stored((value.count if value else 0) + count, self.attempt.transaction_id)
                    DATABASE[word] = value
        self.collector.emit(Values(self.attempt, len(DATABASE)))

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("id", "words"))


class ComparesByHelper(Base):
    def finish_batch(self):
        txid = self.attempt.transaction_id
        if not self.done(txid):
            self.totals.update(self.counts)
            LATEST["txid"] = txid

    @staticmethod
    def done(txid):
        return LATEST.get("txid", 0) >= txid


class ByTxid(Base):
    def finish_batch(self):
        DATABASE[self.attempt.transaction_id] = dict(self.counts)
        RECORDED.append((self.attempt.transaction_id, sum(self.counts.values())))


class SetsWhateverWasThere(Base):
    def finish_batch(self):
        for word, count in self.counts.items():
            LATEST[word] = count


class IntoSql(Base):
    def prepare(self, conf, context, collector, batch_id):
        super().prepare(conf, context, collector, batch_id)
        self.db = sqlite3.connect(conf["db"])
        self.id = batch_id

    def finish_batch(self):
        with self.db:
            last = self.db.execute("SELECT txid FROM fence").fetchone()
            if last is None or last[0] < self.id.transaction_id:
                self.db.executemany("UPDATE counts SET n = n + ? WHERE word = ?", self.counts.items())
                self.db.execute("UPDATE fence SET txid = ?", [self.id.transaction_id])


def once(function):
    @functools.wraps(function)
    def committed(self):
        if LATEST.get("once", 0) < self.attempt.transaction_id:
            function(self)
            LATEST["once"] = self.attempt.transaction_id

    return committed


class ByDecorator(Base):
    @once
    def finish_batch(self):
        self.totals.update(self.counts)


@contextlib.contextmanager
def skipping(attempt):
    if LATEST.get("skipping") == attempt.transaction_id:
        raise LookupError(attempt)
    yield


class ByContext(Base):
    def finish_batch(self):
        with contextlib.suppress(LookupError), skipping(self.attempt):
            self.totals.update(self.counts)


class Store:
    def __init__(self, url):
        self._db = registry.get(url)

    def add(self, token, counts):
        if self._db.last() != token:
            self._db.execute("update counts set n = n + 1")
            self._db.commit()


class ByCommitId(Base):
    def finish_batch(self):
        token = (self.attempt.transaction_id, self.context.commit_id(self.attempt))
        Store("db").add(token, self.counts)


class IntoRedis(Base):
    def finish_batch(self):
        client = redis.Redis()
        if client.get("txid") != str(self.attempt.transaction_id):
            for word, count in self.counts.items():
                client.incrby(word, count)
            client.set("txid", self.attempt.transaction_id)


class Downstream(BaseBasicBolt):
    """Basic, and executed at the commit: the first field is the attempt."""

    def execute(self, tup, collector):
        attempt, words = tup
        if LATEST.get("words", (0, 0))[1] < attempt.transaction_id:
            LATEST["words"] = (LATEST.get("words", (0, 0))[0] + words, attempt.transaction_id)


STORE = SQLiteStore("words.sqlite")


class IntoStore(Base):
    """SQL in a store's own transaction is undone where the store holds the transaction already."""

    def finish_batch(self):
        with STORE.transaction(self.context, self.attempt) as connection:
            connection.execute("UPDATE totals SET words = words + ?", (sum(self.counts.values()),))
            cursor = connection.cursor()
            cursor.execute("INSERT INTO seen SELECT word FROM words")


class Upserting(BaseBasicBolt):
    """Not a committer, but what it writes says what to do where it is there, or names the attempt."""

    def prepare(self, conf, context):
        self.db = sqlite3.connect(conf["db"])

    def execute(self, tup, collector):
        self.db.execute("insert or ignore into words values (?)", (tup[1],))
        self.db.execute("insert into words_of values (?, ?)", (tup[0].transaction_id, tup[1]))
        self.db.commit()
        with open(f"out/{tup.get_value(0).transaction_id}", "w") as out:
            out.write(tup[1])


def topology():
    builder = TransactionalTopologyBuilder("committing", "words", spouts.words(), 1)
    bolts = [
        Compares(),
        ComparesByHelper(),
        ByTxid(),
        SetsWhateverWasThere(),
        IntoSql(),
        ByCommitId(),
        IntoRedis(),
        ByDecorator(),
        ByContext(),
        IntoStore(),
    ]
    for index, bolt in enumerate(bolts):
        builder.set_bolt(f"store-{index}", bolt).global_grouping("words")
    builder.set_bolt("downstream", Downstream()).global_grouping("store-0")
    builder.set_bolt("upserting", Upserting()).shuffle_grouping("words")
    return builder
