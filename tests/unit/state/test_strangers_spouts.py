"""Stores in spouts as strangers write them, and one database that is declared twice."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from stormline import (
    BaseTransactionalBolt,
    ICommitter,
    ICommitterTransactionalSpout,
    ITransactionalSpout,
    TransactionalTopologyBuilder,
)
from stormline.errors import TopologyFailed
from stormline.state import MemoryStore, MySQLStore, PostgreSQLStore, RedisStore, SQLiteStore, Store, TransactionalMap
from stormline.testing import InProcessCluster

STORE = MemoryStore("spouts")
SENT = TransactionalMap(STORE, "sent", key={"n": int}, value={"times": int})


class Numbers(ITransactionalSpout, ICommitterTransactionalSpout):
    """Five batches of one number. `early`: its emitter stores when it emits, else at the commit."""

    def __init__(self, early: bool) -> None:
        self.early = early

    def get_coordinator(self, conf: Any, context: Any) -> Any:
        return Counting()

    def get_emitter(self, conf: Any, context: Any) -> Any:
        return Storing(context, self.early)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(["tx", "n"])


class Counting:
    begun = 0

    def is_ready(self) -> bool:
        return self.begun < 5

    def initialize_transaction(self, txid: int, prev_metadata: Any) -> int:
        self.begun = txid
        return txid

    def close(self) -> None:
        pass


class Storing:
    def __init__(self, context: Any, early: bool) -> None:
        self.context, self.early = context, early

    def emit_batch(self, attempt: Any, metadata: int, collector: Any) -> None:
        collector.emit([attempt, metadata])
        if self.early:
            self.store(attempt)

    def commit(self, attempt: Any) -> None:
        self.store(attempt)

    def store(self, attempt: Any) -> None:
        SENT.begin_commit(self.context, attempt).increment({attempt.transaction_id: 1})

    def cleanup_before(self, txid: int) -> None:
        pass

    def close(self) -> None:
        pass


class CountsToo(BaseTransactionalBolt, ICommitter):
    def prepare(self, conf: Any, context: Any, collector: Any, attempt: Any) -> None:
        self.context, self.attempt = context, attempt

    def execute(self, tup: Any) -> None:
        pass

    def finish_batch(self) -> None:
        SENT.begin_commit(self.context, self.attempt).increment({0: 1})


def run(early: bool) -> None:
    STORE.clear()
    builder = TransactionalTopologyBuilder("spouts", "spout", Numbers(early))
    builder.set_bolt("bolt", CountsToo()).global_grouping("spout")
    with InProcessCluster() as cluster, cluster.submit(builder.build_topology()) as handle:
        handle.await_drained(60)


def test_a_committing_emitter_stores_in_the_transaction_of_the_committers() -> None:
    run(early=False)
    assert SENT.items() == {0: 5, **dict.fromkeys(range(1, 6), 1)}


def test_an_emitter_that_stores_when_it_emits_is_told_where_to() -> None:
    with pytest.raises(
        TopologyFailed, match=r"NotCommitting in the emitter of 'spout'.* or in commit\(\) of an ICommitterT"
    ):
        run(early=True)
    assert SENT.items() == {}


# ------------------------------------------------------------------------------------ one database, declared twice


class IntoBoth(BaseTransactionalBolt, ICommitter):
    def __init__(self, *stores: Store) -> None:
        self.maps = [
            TransactionalMap(store, f"counts_{i}", key={"n": int}, value={"times": int})
            for i, store in enumerate(stores)
        ]

    def prepare(self, conf: Any, context: Any, collector: Any, attempt: Any) -> None:
        self.context, self.attempt = context, attempt

    def execute(self, tup: Any) -> None:
        pass

    def finish_batch(self) -> None:
        for one in self.maps:
            one.begin_commit(self.context, self.attempt).increment({1: 1})


def test_one_file_by_several_names_is_one_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.symlink(tmp_path, tmp_path / "link")
    stores = [
        SQLiteStore("counts.sqlite"),
        SQLiteStore(tmp_path / "counts.sqlite", timeout_secs=9),
        SQLiteStore("link/counts.sqlite"),
    ]
    STORE.clear()
    builder = TransactionalTopologyBuilder("spouts", "spout", Numbers(early=False))
    bolt = IntoBoth(*stores)
    builder.set_bolt("bolt", bolt).global_grouping("spout")
    with InProcessCluster() as cluster, cluster.submit(builder.build_topology()) as handle:
        handle.await_drained(60)
    assert [one.items() for one in bolt.maps] == [{1: 5}] * 3


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (MemoryStore("a"), MemoryStore("a", timeout_secs=9)),
        (PostgreSQLStore("host=db"), PostgreSQLStore("host=db", password="env:A", timeout_secs=9)),
        (MySQLStore("mysql://me@db/counts"), MySQLStore("mysql://me@db/counts", password="env:A", timeout_secs=9)),
        (RedisStore("redis://db/0"), RedisStore("redis://db/0", password="env:A", timeout_secs=9)),
    ],
)
def test_a_store_is_where_it_is_whatever_else_is_said_of_it(one: Store, other: Store) -> None:
    assert (one, hash(one)) == (other, hash(other))
