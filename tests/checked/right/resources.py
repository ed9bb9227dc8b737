"""Resources that are opened in prepare, or whose owner says how it is pickled."""

import logging
import sqlite3
import threading
from pathlib import Path

from stormline import BaseBasicBolt, BaseTransactionalBolt, ICommitter, TransactionalTopologyBuilder
from tests.checked import spouts


class Connection:
    """Reconnects where it arrives."""

    def __init__(self, path):
        self.path = path
        self.db = sqlite3.connect(path, check_same_thread=False)
        self.lock = threading.Lock()

    def __getstate__(self):
        return {"path": self.path}

    def __setstate__(self, state):
        self.__init__(state["path"])


class Reads(BaseBasicBolt):
    log = logging.getLogger("reads")
    path = Path("words.txt")
    file = None

    def __init__(self, path):
        self.connection = Connection(path)
        self.words = None

    def prepare(self, conf, context):
        self.file = self.path.open()
        self.lock = threading.Lock()

    def execute(self, tup, collector):
        with self.lock:
            self.file.readline()


class Shares(BaseTransactionalBolt, ICommitter):
    """Its lock is one for all tasks, which are threads of the driver."""

    lock = threading.Lock()

    def execute(self, tup):
        pass

    def finish_batch(self):
        with self.lock:
            pass


def topology():
    builder = TransactionalTopologyBuilder("resources", "words", spouts.words(), 1)
    builder.set_bolt("reads", Reads(":memory:")).shuffle_grouping("words")
    builder.set_bolt("shares", Shares(), 2).shuffle_grouping("words")
    return builder
