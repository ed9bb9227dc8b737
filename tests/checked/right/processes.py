"""What a process may well keep for itself: connections, caches, locks that guard them, loggers, what prepare sets."""

import functools
import itertools
import logging
import os
import queue
import random
import sqlite3
import tempfile
import threading
import time
from collections import Counter, OrderedDict, defaultdict
from dataclasses import dataclass, field
from io import StringIO

from shoplib import Timed, registry, retried

from stormline import BaseBasicBolt, BaseBatchBolt, Fields, TransactionalTopologyBuilder, Values, resolve_secret
from tests.checked import spouts

log = logging.getLogger(__name__)
_connection = None
_lock = threading.Lock()
_local = threading.local()
_pool = {}
_cache = OrderedDict()
SETTINGS = {}
STOPWORDS = {"a", "the"}
CONFIG = None
_ready = _warned = False
_asked_at = 0.0
_table = {}
_told = set()
_prices, _priced_at = {}, {}
_waiting = queue.Queue()
_numbers, _by_attempt = itertools.count(), {}


def connection(path):
    global _connection
    with _lock:
        if _connection is None:
            _connection = sqlite3.connect(path)
    return _connection


def settled():
    global _ready, _asked_at, _table
    if not _ready:
        logging.getLogger("shoplib").setLevel(logging.ERROR)
        _ready = True
    if time.time() - _asked_at > 60:
        _table = load()
        _asked_at = time.time()
    return _table


def load():
    return {"a": 1}


def warn_once(word):
    global _warned
    if word not in _told:
        log.warning("no price of %s", word)
        _told.add(word)
    if not _warned:
        _warned = True
        print("some words have no price")


def price(word):
    now = time.monotonic()
    if now - _priced_at.get(word, 0) > 10:
        _prices[word] = registry.get(word)
        _priced_at[word] = now
    return _prices[word]


def consume():
    while True:
        log.debug("%s", _waiting.get())


def client(host):
    try:
        return _pool[host]
    except KeyError:
        pass
    made = registry.get(host)
    _pool[host] = made
    return made


def thread_local():
    if not hasattr(_local, "seen"):
        _local.seen = set()
    return _local.seen


@functools.cache
def length(word):
    return len(word)


class Base(Timed, BaseBasicBolt):
    _model = None
    _client_lock = threading.Lock()

    def prepare(self, conf, context):
        global CONFIG
        CONFIG = conf
        SETTINGS.update(conf)
        self.password = resolve_secret(conf.get("password", "env:HOME"))
        self.seen = set()
        self.hits = 0

    @classmethod
    def model(cls):
        with cls._client_lock:
            if cls._model is None:
                cls._model = registry.get("model")
        return cls._model

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("id", "word"))


class Enrich(Base):
    @retried(3)
    def execute(self, tup, collector):
        word = tup.get_string(1)
        started = time.time()
        hit = _cache.get(word)
        if hit is None:
            hit = _cache[word] = self.look_up(word)
            if len(_cache) > 1000:
                _cache.popitem()
        self.hits += 1
        self.seen.add(word)
        local = {}
        local[word] = hit
        names = [word]
        names.append(str(hit))
        client("redis").get(word)
        settled()
        warn_once(word)
        price(word)
        _waiting.put(word)
        self.trie = registry.get("trie")
        self.trie.insert(word)
        rows = connection(SETTINGS.get("db", ":memory:")).execute("select 1 where 1 = ?", [hit]).fetchall()
        thread_local().discard(word)
        log.info("took %.3f s, %d rows", time.time() - started, len(rows))
        if random.random() < 0.01:
            print("sampled", word)
        if word not in STOPWORDS:
            collector.emit(Values(tup[0], f"{word}{length(word)}{self.model()}"))

    def look_up(self, word):
        with open(os.devnull) as nothing:
            nothing.read()
        with open(os.path.join(os.sep, "proc", "self", "stat"), "rb") as stat:
            stat.read()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "scratch")
            with open(path, "w") as scratch:
                scratch.write(word)
        out = StringIO()
        out.write(word)
        return out.getvalue()


@dataclass
class Gathered:
    rows: int = 0
    words: Counter = field(default_factory=Counter)

    def add(self, word):
        self.rows += 1
        self.words[word] += 1


class Count(BaseBatchBolt):
    counts = None
    limit = 10

    def __init__(self, table={"a": 1}, listeners=()):
        self.table = table
        self.listeners = list(listeners)
        self.handler = None

    def prepare(self, conf, context, collector, batch_id):
        self.collector, self.id = collector, batch_id
        self.counts = defaultdict(int)
        self.gathered = Gathered()
        self.number = next(_numbers)
        _by_attempt[batch_id] = []
        self.queue = queue.Queue()
        self.by_length = {}
        self.text = []
        context.set_task_data("last", batch_id)

    def execute(self, tup):
        self.counts[tup[1]] += self.table.get(tup[1], 1)
        self.gathered.add(tup[1])
        _by_attempt[self.id].append(tup[1])
        self.queue.put(tup[1])
        self.by_length.setdefault(len(tup[1]), []).append(tup[1])
        self.text.insert(0, tup[1])
        counts = self.counts
        counts["all"] += 1
        gathered, self.limit = self.gathered, self.limit - 1
        gathered.rows += 0

    def finish_batch(self):
        _by_attempt.pop(self.id)
        for word, count in sorted(self.counts.items(), key=lambda item: item[1]):
            self.collector.emit(Values(self.id, word, count))

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("id", "word", "count"))


def topology():
    builder = TransactionalTopologyBuilder("processes", "words", spouts.words(), 1)
    builder.set_bolt("enrich", Enrich(), 2).shuffle_grouping("words")
    builder.set_bolt("count", Count(), 2).shuffle_grouping("enrich")
    return builder
