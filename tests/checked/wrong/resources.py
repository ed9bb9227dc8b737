"""Connections, files, locks and memory maps as attributes of declared objects."""

import os
import sqlite3
import tempfile
import threading
from dataclasses import dataclass, field

import numpy as np

from stormline import BaseBasicBolt, BaseTransactionalBolt, ICommitter, TransactionalTopologyBuilder
from tests.checked import spouts


class OfTheClass(BaseBasicBolt):
    db = sqlite3.connect(":memory:", check_same_thread=False)  # ! held-resource
    log = open("/dev/null", "a")  # ! held-resource
    lock: threading.Lock = threading.Lock()  # ! held-resource

    def execute(self, tup, collector):
        with self.lock:
            self.log.flush()


class Mapped(BaseTransactionalBolt, ICommitter):
    connection = sqlite3.connect(":memory:")
    trace = open("/dev/null", "w")  # ! held-resource

    def __init__(self):
        self.path = tempfile.mkdtemp()
        self.totals = np.memmap(f"{self.path}/totals", dtype="int64", mode="w+", shape=8)  # ! held-resource
        self.parts = [np.memmap(f"{self.path}/parts", dtype="int64", mode="w+", shape=8)]  # ! held-resource

        self.device = os.open("/dev/null", os.O_RDONLY)  # ! held-resource

    def execute(self, tup):
        pass

    def finish_batch(self):
        pass


@dataclass
class Field(BaseBasicBolt):
    scratch: object = field(default_factory=tempfile.SpooledTemporaryFile)  # ! held-resource

    def execute(self, tup, collector):
        pass


topology = TransactionalTopologyBuilder("resources", "words", spouts.words(), 1)
topology.set_bolt("class", OfTheClass()).shuffle_grouping("words")
topology.set_bolt("mapped", Mapped()).shuffle_grouping("words")
topology.set_bolt("field", Field()).shuffle_grouping("words")
