"""Objects of the module that declared bolts are given, and change: they change copies."""

from collections import Counter

from stormline import BaseBasicBolt, BaseTransactionalBolt, ICommitter, TransactionalTopologyBuilder
from tests.checked import spouts

DATABASE = {}
RESULTS = []


class Repository:
    def __init__(self):
        self.counts = Counter()
        self.saves = 0

    def save(self, word):
        self.counts[word] += 1  # ! copied-object
        self.saves += 1  # ! copied-object


REPOSITORY = Repository()


class Collects(BaseBasicBolt):
    def __init__(self, results):
        self.results = results

    def execute(self, tup, collector):
        self.results.append(tup[1])  # ! copied-object


class Stores(BaseTransactionalBolt, ICommitter):
    def __init__(self, database, repository):
        self.database, self.repository = database, repository

    def prepare(self, conf, context, collector, batch_id):
        self.txid, self.words = batch_id.transaction_id, []

    def execute(self, tup):
        self.words.append(tup[1])

    def finish_batch(self):
        if self.database.get("txid", 0) < self.txid:
            self.database.update(txid=self.txid, words=len(self.words))  # ! copied-object
            self.repository.save(self.words[0])


def topology():
    builder = TransactionalTopologyBuilder("copies", "words", spouts.words(), 1)
    builder.set_bolt("collects", Collects(RESULTS)).shuffle_grouping("words")
    builder.set_bolt("stores", Stores(DATABASE, REPOSITORY)).global_grouping("words")
    return builder
