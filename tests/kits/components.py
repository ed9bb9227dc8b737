"""Bolts that misbehave on order, and ledgers that see every effect. Importable on executors."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from stormline import (
    BaseBasicBolt,
    BaseBatchBolt,
    BaseTransactionalBolt,
    FailedException,
    Fields,
    ICommitter,
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


def eventually(condition: Callable[[], object], timeout_secs: float = 60.0) -> None:
    """Wait for a condition that another thread makes true."""
    deadline = time.monotonic() + timeout_secs
    while not condition():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.005)
