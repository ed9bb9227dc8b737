"""Topologies that store by maps: each tuple counts once, whatever fails in a commit, and wherever."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from stormline import (
    BaseBasicBolt,
    BaseTransactionalBolt,
    FailedException,
    ICommitter,
    MemoryTransactionalSpout,
    Topology,
    TransactionalTopologyBuilder,
    TransactionAttempt,
    Tuple,
)
from stormline.errors import TopologyFailed
from stormline.state import OpaqueMap, SnapshottableMap, SQLiteStore, StateMap, TransactionalMap
from stormline.state.sqlite_connection import SQLiteConnection
from stormline.testing import InProcessCluster, MemoryStateServer
from stormline.topology.config import COMMIT_PLACEMENT, MAX_SPOUT_PENDING
from tests.kits.components import eventually

WORDS = {0: ["cat", "dog", "owl"] * 40, 1: ["dog", "cat"] * 60, 2: ["cat"] * 100}
EXPECTED = dict(Counter(word for words in WORDS.values() for word in words))
BATCHES = 12


class Count(BaseTransactionalBolt, ICommitter):
    """Counts words, and all of them; emits what each word counts now."""

    gathers = ("seen",)
    fails: frozenset[tuple[int, int]] = frozenset()

    def __init__(self, counts: StateMap, total: SnapshottableMap) -> None:
        self.counts, self.total = counts, total

    def prepare(self, conf: Any, context: Any, collector: Any, attempt: TransactionAttempt) -> None:
        self.context, self.attempt, self.collector = context, attempt, collector
        self.seen: Counter[str] = Counter()

    def execute(self, tup: Tuple) -> None:
        self.seen[tup[1]] += 1

    def finish_batch(self) -> None:
        counts = self.counts.begin_commit(self.context, self.attempt)
        for word, count in counts.increment(self.seen).items():
            self.collector.emit([self.attempt, word, count])
        if (self.attempt.transaction_id, self.attempt.attempt_id) in self.fails:
            raise FailedException("on order")
        self.total.begin_commit(self.context, self.attempt).increment(self.seen.total())

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(["tx", "word", "count"])


class Best(BaseBasicBolt):
    """Keeps the greatest count, by own SQL: a BasicBolt downstream of a committer, prepared once for all commits."""

    def __init__(self, store: SQLiteStore) -> None:
        self.store = store

    def prepare(self, conf: Any, context: Any) -> None:
        self.context = context

    def execute(self, tup: Tuple, collector: Any) -> None:
        with self.store.transaction(self.context, tup[0]) as db:
            db.execute("CREATE TABLE IF NOT EXISTS best (one INTEGER PRIMARY KEY, count INTEGER)")
            db.execute("INSERT INTO best VALUES (1, ?) ON CONFLICT DO UPDATE SET count = max(count, ?)", [tup[2]] * 2)


@pytest.fixture
def store(tmp_path: Path) -> SQLiteStore:
    return SQLiteStore(tmp_path / "words.sqlite")


def maps(store: SQLiteStore, kind: type[StateMap] = TransactionalMap) -> tuple[StateMap, SnapshottableMap]:
    counts = kind(store, "words", key={"word": str}, value={"count": int}, cache=10)
    return counts, SnapshottableMap(kind(store, "totals", key={"name": str}, value={"count": int}))


def topology(store: SQLiteStore, kind: type[StateMap] = TransactionalMap, best: bool = True) -> Topology:
    builder = TransactionalTopologyBuilder("words", "spout", MemoryTransactionalSpout(WORDS, ["word"], 10), 2)
    builder.set_bolt("count", Count(*maps(store, kind)), 3).fields_grouping("spout", ["word"])
    if best:
        builder.set_bolt("best", Best(store)).global_grouping("count")
    return builder.build_topology()


def lost_answers(monkeypatch: pytest.MonkeyPatch, lost: set[int], before: bool) -> None:
    """Let commits of the database, by their number, fail before they happen, or with their answer lost."""
    commit, calls = SQLiteConnection.commit, iter(range(1, 1000))

    def broken(self: SQLiteConnection) -> None:
        fails = next(calls) in lost
        if not (fails and before):
            commit(self)
        if fails:
            raise FailedException("on order")

    monkeypatch.setattr(SQLiteConnection, "commit", broken)


def run(made: Topology, config: dict[str, Any] | None = None, server: MemoryStateServer | None = None) -> int:
    with InProcessCluster(server) as cluster, cluster.submit(made, {MAX_SPOUT_PENDING: 4, **(config or {})}) as handle:
        handle.await_drained(60)
        return handle.snapshot().replays


@pytest.mark.parametrize("kind", [TransactionalMap, OpaqueMap])
@pytest.mark.parametrize("before", [True, False])
def test_every_word_counts_once_whatever_fails(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch, kind: type[StateMap], before: bool
) -> None:
    monkeypatch.setattr(Count, "fails", frozenset({(2, 1), (5, 1), (5, 2)}))
    lost_answers(monkeypatch, {1, 4, 5, 6, 11}, before)
    assert run(topology(store, kind)) > 0
    counts, total = maps(store, kind)
    assert counts.items() == EXPECTED
    assert total.map.items() == {"total": sum(EXPECTED.values())}
    with closing(sqlite3.connect(store.path)) as db:
        assert db.execute("SELECT count FROM best").fetchall() == [(EXPECTED["cat"],)]
        assert db.execute("SELECT topology, scope, txid FROM stormline_fence").fetchall() == [("words", "", BATCHES)]


def test_a_topology_goes_on_with_its_store_in_another_driver(store: SQLiteStore) -> None:
    server = MemoryStateServer()
    with InProcessCluster(server) as cluster, cluster.submit(topology(store), {MAX_SPOUT_PENDING: 1}) as handle:
        eventually(lambda: handle.snapshot().txid_committed >= 2)
    run(topology(store), server=server)
    assert maps(store)[0].items() == EXPECTED


def test_state_that_is_gone_stops_the_topology_and_leaves_the_store_alone(store: SQLiteStore) -> None:
    run(topology(store))
    with pytest.raises(TopologyFailed, match=r"StoreMismatch in finish_batch of 'count'.*holds transaction 12 of topo"):
        run(topology(store))
    assert maps(store)[0].items() == EXPECTED


def test_a_store_that_is_gone_stops_the_topology(store: SQLiteStore) -> None:
    server = MemoryStateServer()
    with InProcessCluster(server) as cluster, cluster.submit(topology(store), {MAX_SPOUT_PENDING: 1}) as handle:
        eventually(lambda: handle.snapshot().txid_committed >= 2)
    Path(store.path).unlink()
    with pytest.raises(TopologyFailed, match=r"\(0: nothing\), and the next one to commit is \d+: the database was re"):
        run(topology(store), server=server)


def test_on_the_executors_each_task_stores_by_itself_and_each_word_counts_once(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost_answers(monkeypatch, {2, 5, 6, 7, 20}, before=False)
    counts = maps(store)[0]
    builder = TransactionalTopologyBuilder("words", "spout", MemoryTransactionalSpout(WORDS, ["word"], 10), 2)
    builder.set_bolt("count", CountWords(counts), 3).fields_grouping("spout", ["word"])
    assert run(builder.build_topology(), {COMMIT_PLACEMENT: "executors"}) > 0
    assert counts.items() == EXPECTED
    with closing(sqlite3.connect(store.path)) as db:
        fences = db.execute("SELECT scope, txid FROM stormline_fence ORDER BY scope").fetchall()
    assert fences == [(f"count:{i}/3", BATCHES) for i in range(3)]


class CountWords(Count):
    """Counts words alone: a total of all tasks is no task's own."""

    def __init__(self, counts: StateMap) -> None:
        self.counts = counts

    def finish_batch(self) -> None:
        self.counts.begin_commit(self.context, self.attempt).increment(self.seen)
