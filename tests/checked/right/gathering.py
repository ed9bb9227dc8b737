"""Bolts that keep to what they declare to gather."""

from collections import Counter

from stormline import BaseTransactionalBolt, ICommitter, TransactionalTopologyBuilder
from tests.checked import spouts

STORED = {}


class Gathering(BaseTransactionalBolt, ICommitter):
    gathers = ("counts", "rows")

    def prepare(self, conf, context, collector, batch_id):
        self.txid = batch_id.transaction_id
        self.counts, self.rows = Counter(), 0

    def execute(self, tup):
        word = tup[1]
        self.counts[word] += 1
        self.add_row()

    def add_row(self):
        self.rows += 1

    def finish_batch(self):
        self.total = sum(self.counts.values())
        if STORED.get("txid") != self.txid:
            STORED.update(txid=self.txid, rows=STORED.get("rows", 0) + self.rows)


class OnTheObject(BaseTransactionalBolt):
    def __init__(self):
        self.gathers = ["words"]

    def prepare(self, conf, context, collector, batch_id):
        self.words = []

    def execute(self, tup):
        self.words.append(tup[1])

    def finish_batch(self):
        print(self.words)


def topology():
    builder = TransactionalTopologyBuilder("gathering", "words", spouts.words(), 1)
    builder.set_bolt("gathering", Gathering()).global_grouping("words")
    builder.set_committer_bolt("object", OnTheObject()).global_grouping("words")
    return builder
