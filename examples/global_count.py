"""storm-starter's TransactionalGlobalCount: counts all tuples, each exactly once, however often a batch is replayed.

    spout (3 tasks) → partial-count (5 tasks) → sum (committer)

`BatchCount` counts what reaches one task and emits it when the batch is complete. `UpdateGlobalCount` adds these up
and stores the sum in its commit phase, beside the txid that stored it: a replay of a transaction that was stored
already finds its own txid there, and leaves the count alone.

For porters: `DATABASE` is a plain dict, as in storm-starter, in the driver process, where commits run. It ends with
the process, but the topology does not: run again on the same state directory, it goes on after the last committed
transaction, with an empty dict. `report()` says which transactions its numbers are of. A topology that outlives its
process stores in a database, as `examples.flight_delays` does.
"""

from __future__ import annotations

from dataclasses import dataclass

from stormline import (
    BaseBatchBolt,
    BaseTransactionalBolt,
    Collector,
    Conf,
    Config,
    Fields,
    ICommitter,
    MemoryTransactionalSpout,
    OutputFieldsDeclarer,
    Topology,
    TopologyContext,
    TransactionalTopologyBuilder,
    TransactionAttempt,
    Tuple,
    Values,
)

PARTITION_TAKE_PER_BATCH = 3
DATA = {
    0: ["cat", "dog", "chicken", "cat", "dog", "apple"],
    1: ["cat", "dog", "apple", "banana"],
    2: ["cat", "cat", "cat", "cat", "cat", "dog", "dog", "dog", "dog"],
}


@dataclass(frozen=True)
class Value:
    """What the database holds: a count, and the transaction that stored it."""

    count: int
    txid: int


GLOBAL_COUNT_KEY = "GLOBAL-COUNT"
DATABASE: dict[str, Value] = {}
STORED: dict[int, int] = {}  # for report(): the count that each transaction of this run left in the database


class BatchCount(BaseBatchBolt):
    """Counts the tuples of a batch that reach one task."""

    def prepare(self, conf: Conf, context: TopologyContext, collector: Collector, batch_id: TransactionAttempt) -> None:
        self.collector = collector
        self.id = batch_id
        self.count = 0

    def execute(self, tup: Tuple) -> None:
        self.count += 1

    def finish_batch(self) -> None:
        self.collector.emit(Values(self.id, self.count))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("id", "count"))


class UpdateGlobalCount(BaseTransactionalBolt, ICommitter):
    """Adds a batch's count to the stored one, unless this transaction has done so before."""

    gathers = ("sum",)

    def prepare(self, conf: Conf, context: TopologyContext, collector: Collector, batch_id: TransactionAttempt) -> None:
        self.collector = collector
        self.attempt = batch_id
        self.sum = 0

    def execute(self, tup: Tuple) -> None:
        self.sum += tup.get_integer(1)

    def finish_batch(self) -> None:
        txid = self.attempt.transaction_id
        value = DATABASE.get(GLOBAL_COUNT_KEY)
        if value is None or value.txid != txid:
            value = Value(self.sum + (value.count if value else 0), txid)
            DATABASE[GLOBAL_COUNT_KEY] = value
        STORED[txid] = value.count
        self.collector.emit(Values(self.attempt, value.count))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("id", "sum"))


def topology() -> Topology:
    """Declare the topology."""
    spout = MemoryTransactionalSpout(DATA, Fields("word"), PARTITION_TAKE_PER_BATCH)
    builder = TransactionalTopologyBuilder("global-count", "spout", spout, 3)
    builder.set_bolt("partial-count", BatchCount(), 5).none_grouping("spout")
    builder.set_bolt("sum", UpdateGlobalCount()).global_grouping("partial-count")
    return builder.build_topology()


config = Config()
config.set_max_spout_pending(3)


def report() -> str:
    """Return the stored count, and what it was after each transaction of this run."""
    if not STORED:
        return (
            "This run committed nothing in this process: an earlier one on the same state directory has counted all "
            "there is, and its database, a dict, ended with it; or commits were placed on the executors."
        )
    lines = [f"Stored count: {DATABASE[GLOBAL_COUNT_KEY].count}"]
    lines += [f"  after transaction {txid}: {count}" for txid, count in sorted(STORED.items())]
    if min(STORED) > 1:
        lines.append(f"An earlier run counted what came before transaction {min(STORED)}; its dict ended with it.")
    return "\n".join(lines)
