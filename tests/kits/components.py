"""Bolts and spouts that misbehave on order, and ledgers that see every effect. Importable on executors."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stormline import (
    BaseBasicBolt,
    BaseBatchBolt,
    BaseTransactionalBolt,
    FailedException,
    Fields,
    ICommitter,
    ICommitterTransactionalSpout,
    IOpaquePartitionedTransactionalSpout,
    IPartitionedTransactionalSpout,
    ITransactionalSpout,
    MemoryTransactionalSpout,
    TransactionalTopologyBuilder,
    TransactionAttempt,
    Tuple,
)
from stormline.topology.topology import Topology


@dataclass
class Ledger:
    """A database: per key (txid, values). `finished` holds every finish_batch, `applied` every change.

    `commit_ids`: under which id each transaction came to be committed.
    """

    values: dict[str, tuple[int, list[Any]]] = field(default_factory=dict)
    finished: list[TransactionAttempt] = field(default_factory=list)
    applied: list[int] = field(default_factory=list)
    trail: list[Any] = field(default_factory=list)
    commit_ids: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))

    def apply(self, key: str, txid: int, values: Sequence[Any]) -> None:
        """Change one key exactly once a transaction, by the txid beside it."""
        stored, old = self.values.get(key, (0, []))
        assert stored <= txid, (stored, txid)
        if stored < txid:
            self.values[key] = (txid, old + sorted(values, key=repr))
            self.applied.append(txid)

    def all(self) -> list[Any]:
        """Return all values of all keys."""
        return [value for _, values in self.values.values() for value in values]


LEDGERS: defaultdict[str, Ledger] = defaultdict(Ledger)
EVENTS: defaultdict[str, threading.Event] = defaultdict(threading.Event)


@dataclass(frozen=True)
class Fault:
    """Raise `error` in `where` of transaction `txid`, for attempt ids after `spared` up to `attempts`."""

    where: str
    txid: int = 2
    attempts: int = 1
    error: str = "failed"
    sleep_secs: float = 0.0
    spared: int = 0

    def strike(self, where: str, attempt: TransactionAttempt) -> None:
        """Do it if it is time."""
        due = self.spared < attempt.attempt_id <= self.attempts
        if where == self.where and attempt.transaction_id == self.txid and due:
            time.sleep(self.sleep_secs)
            if self.error == "failed":
                raise FailedException(f"on order in {where}")
            if self.error == "bug":
                raise ZeroDivisionError(f"on order in {where}")
            if self.error == "exit":
                raise SystemExit(3)


NO_FAULT = Fault("nowhere")


class Batch(BaseBatchBolt):
    """Gathers the values of a batch, and emits them when it finishes."""

    fields = Fields("tx", "value")

    def __init__(self, fault: Fault = NO_FAULT) -> None:
        self.fault = fault

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(self.fields)

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        self.conf, self.context, self.collector, self.attempt = conf, context, collector, batch_id
        self.values: list[Any] = []
        self.fault.strike("prepare", batch_id)

    def execute(self, tup: Tuple) -> None:
        assert tup[0] == self.attempt
        self.fault.strike("execute", self.attempt)
        self.values.append(tup[1])

    def finish_batch(self) -> None:
        self.fault.strike("finish_batch", self.attempt)
        for value in self.values:
            self.collector.emit([self.attempt, value])


class Counting(Batch):
    """Emits one tuple a batch and task: how many it saw."""

    def finish_batch(self) -> None:
        self.fault.strike("finish_batch", self.attempt)
        self.collector.emit([self.attempt, len(self.values)])


class Basic(BaseBasicBolt):
    """Passes values on."""

    def __init__(self, fault: Fault = NO_FAULT) -> None:
        self.fault = fault

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "value"))

    def prepare(self, conf: Any, context: Any) -> None:
        self.prepared = True

    def execute(self, tup: Tuple, collector: Any) -> None:
        self.fault.strike("execute", tup[0])
        collector.emit([tup[0], tup[1]])


class Store(BaseTransactionalBolt, ICommitter):
    """Writes the values of a batch into a ledger, once a transaction."""

    gathers: Sequence[str] | None = ("values",)

    def __init__(self, ledger: str, fault: Fault = NO_FAULT) -> None:
        self.ledger = ledger
        self.fault = fault

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "value"))

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        self.conf, self.context, self.collector, self.attempt = conf, context, collector, batch_id
        self.values: list[Any] = []
        self.fault.strike("prepare", batch_id)

    def execute(self, tup: Tuple) -> None:
        self.fault.strike("execute", self.attempt)
        self.values.append(tup[1])

    def finish_batch(self) -> None:
        ledger = LEDGERS[self.ledger]
        ledger.commit_ids[self.attempt.transaction_id].add(self.context.commit_id(self.attempt))
        self.fault.strike("before", self.attempt)
        ledger.finished.append(self.attempt)
        ledger.apply(str(self.context.this_task_index), self.attempt.transaction_id, self.values)
        self.collector.emit([self.attempt, len(self.values)])
        self.fault.strike("after", self.attempt)


class StoreAtCommit(Store):
    """Does not say what it gathers."""

    gathers = None


class StoreWithLock(StoreAtCommit):
    """Opens in `prepare` what cannot travel."""

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        super().prepare(conf, context, collector, batch_id)
        self.lock = threading.Lock()

    def finish_batch(self) -> None:
        with self.lock:
            super().finish_batch()


SUMS: dict[str, int] = {}


class SumsIntoModule(BaseTransactionalBolt, ICommitter):
    """Takes in `prepare` the dict of this module that is its database, as Storm's examples do."""

    def __init__(self, name: str) -> None:
        self.name = name

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        self.database, self.sum = SUMS, 0

    def execute(self, tuple: Tuple) -> None:
        self.sum += tuple[1]

    def finish_batch(self) -> None:
        self.database[self.name] = self.database.get(self.name, 0) + self.sum

    def declare_output_fields(self, declarer: Any) -> None: ...


class Trail(BaseTransactionalBolt):
    """Notes in a ledger who finished, with the values it had then."""

    gathers = ("values",)

    def __init__(self, ledger: str, name: str) -> None:
        self.ledger = ledger
        self.name = name

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "value"))

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        self.collector, self.attempt = collector, batch_id
        self.values: list[Any] = []

    def execute(self, tup: Tuple) -> None:
        self.values.append(tup[1])

    def finish_batch(self) -> None:
        self.note(sorted(map(str, self.values)))
        self.collector.emit([self.attempt, self.name])

    def note(self, values: list[str]) -> None:
        LEDGERS[self.ledger].trail.append((self.attempt.transaction_id, self.name, values))


class CommittingTrail(Trail, ICommitter):
    """A `Trail` that is a committer."""


@dataclass
class Ranges:
    """Batches of a spout without data: partition p of txid n holds (p, offset) for `rows` offsets."""

    ledger: str
    batches: int
    partitions: int = 2
    rows: int = 3
    fault: Fault = NO_FAULT
    hesitant: bool = True


class Coordinator:
    """Says when there is a batch, and which."""

    def __init__(self, ranges: Ranges) -> None:
        self.ranges = ranges
        self.begun = 0
        self.asked = 0

    def is_ready(self) -> bool:
        self.asked += 1
        fault = self.ranges.fault
        if fault.where == "is_ready" and self.asked <= fault.attempts:
            fault.strike("is_ready", TransactionAttempt(fault.txid, 0))
        # A hesitant one answers every second question with no: that must leave no gap.
        return (self.asked % 2 == 0 or not self.ranges.hesitant) and self.begun < self.ranges.batches

    def initialize_transaction(self, txid: int, prev_metadata: Any) -> Any:
        trail = LEDGERS[self.ranges.ledger].trail
        trail.append(("initialize", txid, prev_metadata))
        tries = sum(entry[:2] == ("initialize", txid) for entry in trail)
        self.ranges.fault.strike("initialize", TransactionAttempt(txid, tries))
        self.begun += 1
        return {"from": 0 if prev_metadata is None else prev_metadata["to"], "to": txid * self.ranges.rows}

    def num_partitions(self) -> int:
        self.begun += 1
        return self.ranges.partitions

    def close(self) -> None:
        LEDGERS[self.ranges.ledger].trail.append(("closed",))


class _Emitter:
    def __init__(self, ranges: Ranges, context: Any) -> None:
        self.ranges = ranges
        self.context = context

    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: Any) -> None:
        self.ranges.fault.strike("emit", attempt)
        if self.context.this_task_index == 0:
            for offset in range(metadata["from"], metadata["to"]):
                collector.emit([attempt, ("plain", offset)])

    def emit_partition_batch_new(self, attempt: TransactionAttempt, collector: Any, partition: int, last: Any) -> Any:
        metadata = [0 if last is None else last[1], (0 if last is None else last[1]) + self.ranges.rows]
        self._emit("new", attempt, collector, partition, metadata)
        return metadata

    def emit_partition_batch(self, attempt: TransactionAttempt, collector: Any, partition: int, metadata: Any) -> None:
        self._emit("again", attempt, collector, partition, metadata)

    def _emit(self, how: str, attempt: TransactionAttempt, collector: Any, partition: int, metadata: Any) -> None:
        if partition == 1:
            self.ranges.fault.strike("emit", attempt)
        for offset in range(*metadata):
            collector.emit([attempt, (how, partition, offset)])

    def commit(self, attempt: TransactionAttempt) -> None:
        LEDGERS[self.ranges.ledger].trail.append(("commit", attempt.transaction_id))
        self.ranges.fault.strike("commit", attempt)

    def cleanup_before(self, txid: int) -> None: ...

    def close(self) -> None: ...


class _Spout:
    emits_on_executors = True

    def __init__(self, ranges: Ranges) -> None:
        self.ranges = ranges

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "value"))

    def get_coordinator(self, conf: Any, context: Any) -> Any:
        return Coordinator(self.ranges)

    def get_emitter(self, conf: Any, context: Any) -> Any:
        return _Emitter(self.ranges, context)


class PlainSpout(_Spout, ITransactionalSpout):
    """Its coordinator defines the batches."""


class CommitterSpout(PlainSpout, ICommitterTransactionalSpout):
    """A `PlainSpout` whose emitter commits."""

    emits_on_executors = False


class PartitionedSpout(_Spout, IPartitionedTransactionalSpout):
    """Emits ('new' or 'again', partition, offset)."""


class ChangingOpaqueEmitter:
    """Reads whatever `available` holds: it may give more, or less, on a replay."""

    def __init__(self, spout: ChangingOpaqueSpout) -> None:
        self.spout = spout

    def num_partitions(self) -> int:
        return 1

    def emit_partition_batch(self, attempt: TransactionAttempt, collector: Any, partition: int, last: Any) -> Any:
        start = 0 if last is None else last
        if self.spout.gone:
            return None
        taken = self.spout.available[start:][: self.spout.take]
        for row in taken:
            collector.emit([attempt, row])
        return start + len(taken)

    def close(self) -> None: ...


class ChangingOpaqueSpout(IOpaquePartitionedTransactionalSpout):
    """An opaque spout of the driver process whose rows the test changes at will."""

    def __init__(self) -> None:
        self.available: list[Any] = []
        self.gone = False
        self.take = 1000
        self.batches_ahead_max = 0

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "value"))

    def get_coordinator(self, conf: Any, context: Any) -> Any:
        spout = self

        class Coordinator:
            def is_ready_after(self, positions: Mapping[int, Any], batches_ahead: int) -> bool:
                last = positions.get(0) or 0
                ahead = last + batches_ahead * spout.take if batches_ahead else last
                return batches_ahead <= spout.batches_ahead_max and ahead < len(spout.available)

            def close(self) -> None: ...

        return Coordinator()

    def get_emitter(self, conf: Any, context: Any) -> Any:
        return ChangingOpaqueEmitter(self)


def numbers(count: int, partitions: int = 2) -> dict[int, list[int]]:
    """Return `count` numbers in partitions."""
    return {p: list(range(p, count, partitions)) for p in range(partitions)}


def line(
    topology_id: str,
    rows: dict[int, list[Any]],
    take: int,
    *bolts: Callable[[TransactionalTopologyBuilder], Any],
    parallelism: int = 1,
) -> Topology:
    """Build a topology on a memory spout 'spout' (fields tx, value)."""
    builder = TransactionalTopologyBuilder(
        topology_id, "spout", MemoryTransactionalSpout(rows, ["value"], take), parallelism
    )
    for bolt in bolts:
        bolt(builder)
    return builder.build_topology()


def eventually(condition: Callable[[], object], timeout_secs: float = 20.0) -> None:
    """Wait for a condition that another thread makes true."""
    deadline = time.monotonic() + timeout_secs
    while not condition():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.005)
