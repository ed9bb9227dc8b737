"""A topology that counts words in a database, with hooks in its second transaction, and what must come of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from stormline import (
    BaseTransactionalBolt,
    ICommitter,
    MemoryTransactionalSpout,
    Topology,
    TopologyContext,
    TransactionalTopologyBuilder,
    TransactionAttempt,
    Tuple,
)
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from stormline.runtime.state.memory_store import MemoryStateServer
from stormline.state import OpaqueMap, Store, TransactionalMap

TOPOLOGY = "words"
WORDS = ["cat", "dog", "cat", "owl", "cat", "ant"]
ROWS = {p: [f"{word}-{p}" if word == "ant" else word for word in WORDS * 2] for p in range(2)}
TRANSACTIONS = 4
EXPECTED = dict(Counter(word for words in ROWS.values() for word in words))
PATIENCE_SECS = 120.0

Hook = Callable[["Counts"], None]
Troubles = dict[str, Hook]
"""What is to happen where, once, in transaction 2: "begins", "begun", "stored"; "ended": before 3 begins."""


class Counts(BaseTransactionalBolt, ICommitter):
    """Counts words in two maps of one store; `seen` is all that its attempts found, in the order of commits."""

    troubles: ClassVar[Troubles] = {}
    seen: ClassVar[list[tuple[TransactionAttempt, bool]]] = []

    def __init__(self, store: Store) -> None:
        self.store = store

    def prepare(self, conf: Any, context: TopologyContext, collector: Any, attempt: TransactionAttempt) -> None:
        self.context, self.attempt = context, attempt
        self.words: Counter[str] = Counter()

    def execute(self, tup: Tuple) -> None:
        self.words[tup[1]] += 1

    def finish_batch(self) -> None:
        if self.attempt.transaction_id == 3:
            self._do("ended")
        self._meet("begins")
        counts = transactional(self.store).begin_commit(self.context, self.attempt)
        self.seen.append((self.attempt, counts.stored))
        opaque_counts = opaque(self.store).begin_commit(self.context, self.attempt)
        self._meet("begun")
        counts.increment(self.words)
        opaque_counts.increment(self.words)
        self._meet("stored")

    def _meet(self, point: str) -> None:
        if self.attempt.transaction_id == 2:
            self._do(point)

    def _do(self, point: str) -> None:
        if (trouble := self.troubles.pop(point, None)) is not None:
            trouble(self)

    def own(self, *statements: str) -> None:
        """Run SQL of one's own in the transaction."""
        with self.store.transaction(self.context, self.attempt) as connection:
            for text in statements:
                run(connection, text)


def run(connection: Any, text: str) -> list[Any]:
    """Run a statement on the connection of any of the databases that know SQL."""
    cursor = connection.cursor()
    cursor.execute(text)
    return list(cursor.fetchall()) if cursor.description else []


def transactional(store: Store) -> TransactionalMap:
    return TransactionalMap(store, "words", key={"word": str}, value={"seen": int})


def opaque(store: Store) -> OpaqueMap:
    return OpaqueMap(store, "opaque_words", key={"word": str}, value={"seen": int})


def topology(store: Store, more: int = 0) -> Topology:
    """Declare the topology: four transactions, each of three words of each of two partitions, and `more`."""
    spout = MemoryTransactionalSpout({p: [*rows, *["cat"] * 3 * more] for p, rows in ROWS.items()}, ["word"], 3)
    builder = TransactionalTopologyBuilder(TOPOLOGY, "spout", spout)
    builder.set_bolt("count", Counts(store)).global_grouping("spout")
    return builder.build_topology()


class BadDay:
    """A topology that runs while something happens; `replays` is how often it began a commit anew, or tried to."""

    def __init__(self, cluster: InProcessCluster, store: Store, troubles: Troubles, more: int = 0) -> None:
        Counts.troubles, Counts.seen = troubles, []
        # One transaction a wave and a commit: what happens to the second one happens to it alone.
        config = {"topology.max.spout.pending": 1, "topology.message.timeout.secs": int(PATIENCE_SECS)}
        self._handle = cluster.submit_topology(TOPOLOGY, config, topology(store, more))

    @property
    def replays(self) -> int:
        if self._handle.error is not None:  # who waits for replays would wait in vain
            raise self._handle.error
        return self._handle.snapshot().replays

    @property
    def running(self) -> bool:
        return self._handle.running

    def end(self) -> None:
        """Wait until all is committed, or the topology has stopped with an error."""
        self._handle.await_drained(PATIENCE_SECS)


@contextmanager
def bad_day(store: Store, state: MemoryStateServer | None = None, /, **troubles: Hook) -> Iterator[BadDay]:
    """Let a topology run while something happens, and wait until all that it has is committed."""
    with InProcessCluster(state) as cluster:
        day = BadDay(cluster, store, troubles)
        yield day
        day.end()


def counts_once(store: Store) -> None:
    """See that each word counts once, in both maps, whatever has happened.

    Args:
        store: where the topology stored, past every proxy.
    """
    assert transactional(store).items() == EXPECTED
    assert opaque(store).items() == EXPECTED
    connection = store.connect()
    try:
        connection.begin()
        fence = connection.lock_fence(TOPOLOGY, "")
        connection.rollback()
    finally:
        connection.close()
    assert fence is not None
    assert fence.txid == TRANSACTIONS


def found_stored(txid: int) -> list[bool]:
    """Return what each attempt of a transaction found: whether the database held it already."""
    return [stored for attempt, stored in Counts.seen if attempt.transaction_id == txid]
