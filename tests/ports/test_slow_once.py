"""Storm waits for user code that is slow once, longer than the message time-out: it calls nothing beside it."""

from __future__ import annotations

import threading
from typing import Any, ClassVar

from stormline import (
    BaseTransactionalBolt,
    Fields,
    ICommitter,
    InProcessCluster,
    ITransactionalSpout,
    MemoryTransactionalSpout,
    TransactionalTopologyBuilder,
    Values,
)
from tests.kits.components import eventually

SETTINGS = {"topology.message.timeout.secs": 1, "topology.max.spout.pending": 4}
WAIT_SECS = 20


class Once:
    """A call that waits until the test lets it go on."""

    def __init__(self) -> None:
        self.begun, self.released, self.ended, self.beside = (threading.Event() for _ in range(4))

    def come_by(self) -> None:
        """Wait, the first time; the second time, record it."""
        if self.begun.is_set():
            self.beside.set()
            return
        self.begun.set()
        assert self.released.wait(WAIT_SECS)


class RememberingEmitter:
    """Two rows a batch; it goes on where it is, and remembers its batches."""

    once: ClassVar[Once]

    def __init__(self) -> None:
        self.row = 0
        self.batches: dict[int, list[int]] = {}

    def emit_batch(self, tx: Any, metadata: Any, collector: Any) -> None:
        if tx.transaction_id == 30:
            self.once.come_by()
        if tx.transaction_id not in self.batches:
            self.batches[tx.transaction_id] = [self.row + 1, self.row + 2]
            self.row += 2
        for row in self.batches[tx.transaction_id]:
            collector.emit(Values(tx, row))

    def cleanup_before(self, txid: int) -> None:
        self.batches = {kept: batch for kept, batch in self.batches.items() if kept >= txid}


class Coordinator:
    begun = 0

    def is_ready(self) -> bool:
        return self.begun < 40

    def initialize_transaction(self, txid: int, prev_metadata: Any) -> None:
        self.begun = txid


class RememberingSpout(ITransactionalSpout):
    def get_coordinator(self, conf: Any, context: Any) -> Any:
        return Coordinator()

    def get_emitter(self, conf: Any, context: Any) -> Any:
        return RememberingEmitter()

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "row"))


class Append(BaseTransactionalBolt, ICommitter):
    rows: ClassVar[dict[int, list[int]]]

    def prepare(self, conf: Any, context: Any, collector: Any, attempt: Any) -> None:
        self.attempt, self.taken = attempt, []

    def execute(self, tup: Any) -> None:
        self.taken.append(tup[1])

    def finish_batch(self) -> None:
        self.rows.setdefault(self.attempt.transaction_id, self.taken)


def test_an_emitter_that_is_slow_once_goes_on_with_what_it_remembers() -> None:
    RememberingEmitter.once, Append.rows = Once(), {}
    builder = TransactionalTopologyBuilder("slow-emitter", "spout", RememberingSpout())
    builder.set_bolt("append", Append()).global_grouping("spout")
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("slow-emitter", SETTINGS, builder.build_topology())
        eventually(lambda: handle.snapshot().replays > 0, WAIT_SECS)
        RememberingEmitter.once.released.set()
        handle.await_drained(WAIT_SECS)
    assert [row for txid in sorted(Append.rows) for row in Append.rows[txid]] == list(range(1, 81))


class SlowDatabase(BaseTransactionalBolt, ICommitter):
    """Reads, waits once, and writes: the value with the txid beside it."""

    once: ClassVar[Once]
    stored: ClassVar[tuple[int, int]]

    def prepare(self, conf: Any, context: Any, collector: Any, attempt: Any) -> None:
        self.attempt, self.sum = attempt, 0

    def execute(self, tup: Any) -> None:
        self.sum += tup[1]

    def finish_batch(self) -> None:
        stored, txid = self.stored
        slow = self.attempt.transaction_id == 3 and not self.once.begun.is_set()
        if self.attempt.transaction_id == 3:
            self.once.come_by()
        if txid != self.attempt.transaction_id:
            SlowDatabase.stored = (stored + self.sum, self.attempt.transaction_id)
        if slow:
            self.once.ended.set()


def test_a_commit_that_is_slow_once_is_not_overtaken() -> None:
    SlowDatabase.once, SlowDatabase.stored = Once(), (0, 0)
    spout = MemoryTransactionalSpout({0: list(range(100))}, Fields("number"), 5)
    builder = TransactionalTopologyBuilder("slow-commit", "spout", spout)
    builder.set_bolt("sum", SlowDatabase()).global_grouping("spout")
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("slow-commit", SETTINGS, builder.build_topology())
        if SlowDatabase.once.beside.wait(4):  # which must not come: so this is how long the test takes
            handle.await_committed(5, WAIT_SECS)
        SlowDatabase.once.released.set()
        assert SlowDatabase.once.ended.wait(WAIT_SECS)
        handle.await_drained(WAIT_SECS)
    assert SlowDatabase.stored == (sum(range(100)), 20)
