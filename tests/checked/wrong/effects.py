"""Effects in bolts that run again at every replay."""

import csv
import gzip
import os
import socket
import sqlite3
from pathlib import Path
from urllib import request

import redis
from shoplib import registry

from stormline import BaseBasicBolt, BaseBatchBolt, Fields, TransactionalTopologyBuilder
from tests.checked import spouts

INSERT = "INSERT INTO words (word) VALUES (?)"


class ToSqlite(BaseBasicBolt):
    def prepare(self, conf, context):
        self.db = sqlite3.connect(conf["db"])
        self.cursor = self.db.cursor()

    def execute(self, tup, collector):
        self.cursor.execute(INSERT, [tup[1]])  # ! replayed-effect
        self.db.commit()


class ToUnknown(BaseBasicBolt):
    def prepare(self, conf, context):
        self.db = registry.get("db")
        self.table = registry.get("table")
        self.out = open(conf["out"], "a")
        self.rows = csv.writer(self.out)

    def execute(self, tup, collector):
        self.db.execute(f"update counts set n = n + 1 where word = {tup[1]!r}")  # ! replayed-effect
        self.table.put(tup[1])  # ! replayed-effect
        self.out.write(tup[1])  # ! replayed-effect
        self.rows.writerow([tup[1]])  # ! replayed-effect
        print(tup[1], file=self.out)  # ! replayed-effect


class CommitsOnly(BaseBasicBolt):
    def prepare(self, conf, context):
        self.session = registry.get("session")

    def execute(self, tup, collector):
        self.session.keep(tup[1])
        self.session.commit()  # ! replayed-effect


class ToFiles(BaseBatchBolt):
    def prepare(self, conf, context, collector, batch_id):
        self.words = []

    def execute(self, tup):
        with open(os.path.join("out", tup[1]), "w") as out:  # ! replayed-effect
            print(tup[1], file=out)
        with gzip.open("log.gz", mode="at") as log:  # ! replayed-effect
            log.write(tup[1])

    def finish_batch(self):
        Path("words.txt").write_text("\n".join(self.words))  # ! replayed-effect
        path = Path("out")
        os.remove(path / "old")  # ! replayed-effect


class ToServices(BaseBasicBolt):
    def prepare(self, conf, context):
        self.redis = redis.Redis(conf["redis.host"])
        self.socket = socket.create_connection(("graphite", 2003))

    def execute(self, tup, collector):
        self.redis.incrby(tup[1], 1)  # ! replayed-effect
        self.redis.set(tup[1], int(self.redis.get(tup[1]) or 0) + 1)  # ! replayed-effect
        self._send(tup)

    def _send(self, tup):
        self.socket.sendall(tup[1].encode())  # ! replayed-effect
        request.urlopen("http://hooks", data=b"x")  # ! replayed-effect
        hook = request.Request("http://hooks", b"x")
        request.urlopen(hook)  # ! replayed-effect


class Repository:
    def __init__(self, path):
        self._path = path

    def save(self, word):
        with sqlite3.connect(self._path) as db:
            db.execute("insert into words values (?)", (word,))  # ! replayed-effect


class ByRepository(BaseBasicBolt):
    def prepare(self, conf, context):
        self.words = Repository(conf["db"])

    def execute(self, tup, collector):
        self.words.save(tup[1])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("id", "word"))


def topology():
    builder = TransactionalTopologyBuilder("effects", "words", spouts.words(), 1)
    bolts = [ToSqlite(), ToUnknown(), CommitsOnly(), ToFiles(), ToServices(), ByRepository()]
    for index, bolt in enumerate(bolts):
        builder.set_bolt(f"bolt-{index}", bolt).shuffle_grouping("words")
    return builder
