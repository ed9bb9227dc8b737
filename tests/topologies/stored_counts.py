"""Counts words into a store, and kills its own driver at a named point of a commit.

Environment: COUNTS_STORE is a path of SQLite or a DSN of PostgreSQL; COUNTS_KILL, if set, is `point:txid`, of the first
transaction from that one on that gets there; COUNTS_GROUP is how many transactions may share a step.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from typing import Any

from stormline import (
    BaseTransactionalBolt,
    Config,
    ICommitter,
    MemoryTransactionalSpout,
    Topology,
    TransactionalTopologyBuilder,
    Tuple,
)
from stormline.state import Count, OpaqueMap, PostgreSQLStore, SQLiteStore, TransactionalMap, persistent_aggregate
from stormline.state.store_resource import StoreResource
from stormline.state.store_transaction import StoreTransaction

DATA = {p: [f"word-{(i * i + p) % 17}" for i in range(200)] for p in range(3)}
EXPECTED = dict(Counter(word for words in DATA.values() for word in words))
TRANSACTIONS = 20

PLACE = os.environ.get("COUNTS_STORE", "counts.sqlite")
STORE = PostgreSQLStore(PLACE) if "=" in PLACE else SQLiteStore(PLACE)
COUNTS = TransactionalMap(STORE, "counts", key={"word": str}, value={"count": int})
LATEST = OpaqueMap(STORE, "latest", key={"word": str}, value={"txid_seen": int})
POINTS = ("begun", "stored", "prepared", "committed", "recorded")
GROUP_POINTS = ("begun", "stored", "held", "followed", "prepared", "committed", "recorded")
"""Of a commit that transactions may share: `held` and `followed` come between two of them."""


def die_at(point: str, txid: int) -> None:
    """End this process here, if that was ordered."""
    ordered, _, since = os.environ.get("COUNTS_KILL", "").partition(":")
    if point == ordered and txid >= int(since):
        os.kill(os.getpid(), signal.SIGKILL)


class Latest(BaseTransactionalBolt, ICommitter):
    """Stores which transaction saw a word last, and by own SQL a row a transaction."""

    effects_in = STORE

    def prepare(self, conf: Any, context: Any, collector: Any, attempt: Any) -> None:
        self.context, self.attempt = context, attempt
        self.words: set[str] = set()

    def execute(self, tup: Tuple) -> None:
        self.words.add(tup[1])

    def finish_batch(self) -> None:
        txid = self.attempt.transaction_id
        LATEST.begin_commit(self.context, self.attempt).multi_put(dict.fromkeys(self.words, txid))
        with STORE.transaction(self.context, self.attempt) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS log (txid BIGINT PRIMARY KEY, words BIGINT)")
            connection.execute(f"INSERT INTO log VALUES ({txid}, {len(self.words)})")
        die_at("stored", txid)


def topology() -> Topology:
    """Declare the topology."""
    builder = TransactionalTopologyBuilder("counts", "spout", MemoryTransactionalSpout(DATA, ["word"], 10))
    persistent_aggregate(builder, "count", "spout", COUNTS, {"count": Count()}, parallelism=2)
    builder.set_bolt("latest", Latest()).global_grouping("spout")
    return builder.build_topology()


config = Config()
config.set_max_spout_pending(8)
config.set_commit_group_max(int(os.environ.get("COUNTS_GROUP", "1")))


# ---------------------------------------------------------------------------------------- the points

_begin, _prepare, _commit = StoreResource.begin, StoreTransaction.prepare, StoreTransaction.commit
_hold, _follow = StoreTransaction.hold, StoreTransaction.follow


def begin(self: StoreResource, token: Any, registry: Any) -> StoreTransaction:
    die_at("recorded", token.txid - 1)
    begun = _begin(self, token, registry)
    die_at("begun", token.txid)
    return begun


def prepare(self: StoreTransaction) -> None:
    _prepare(self)
    die_at("prepared", self.token.txid)


def commit(self: StoreTransaction) -> None:
    _commit(self)
    die_at("committed", self.token.txid)


def hold(self: StoreTransaction) -> None:
    _hold(self)
    die_at("held", self.token.txid)


def follow(self: StoreTransaction, token: Any) -> StoreTransaction | None:
    followed = _follow(self, token)
    print(f"transaction {token.txid} shares a step", flush=True)
    die_at("followed", token.txid)
    return followed


StoreResource.begin, StoreTransaction.prepare, StoreTransaction.commit = begin, prepare, commit  # type: ignore[method-assign]
StoreTransaction.hold, StoreTransaction.follow = hold, follow  # type: ignore[method-assign]
