"""Columnar bolts and spouts that misbehave on order, and note what they see. Importable on executors."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from stormline import (
    ArrowBatchBolt,
    ArrowTransactionalBolt,
    BaseBasicBolt,
    Fields,
    ICommitter,
    TransactionAttempt,
    Tuple,
)
from stormline.bolts.arrow import source_of
from stormline.topology.grouping import CustomStreamGrouping
from tests.kits.components import LEDGERS, NO_FAULT, Fault
from tests.kits.spouts import ChangingOpaqueEmitter, ChangingOpaqueSpout, PartitionedSpout, Ranges


def batch_of(values: Sequence[Any], field: str = "value") -> pa.RecordBatch:
    """Return a batch of one column."""
    return pa.RecordBatch.from_arrays([pa.array(values)], names=[field])


class ArrowPass(ArrowBatchBolt):
    """Passes batches on as they come, with how many it saw when it finishes where `counts`."""

    def __init__(self, fault: Fault = NO_FAULT, counts: bool = False) -> None:
        self.fault = fault
        self.counts = counts

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "value"))
        declarer.declare_stream("rows", Fields("tx", "value"))

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        self.context, self.collector, self.attempt, self.rows = context, collector, batch_id, 0
        self.fault.strike("prepare", batch_id)

    def execute_batch(self, batch: pa.RecordBatch) -> None:
        self.fault.strike("execute", self.attempt)
        assert source_of(batch).task in self.context.component_tasks(source_of(batch).component)
        assert batch.schema.names == ["value"]
        self.rows += batch.num_rows
        if not self.counts:
            self.collector.emit_batch(batch)
            for value in batch.column(0).to_pylist():
                self.collector.emit([self.attempt, value], "rows")

    def finish_batch(self) -> None:
        self.fault.strike("finish_batch", self.attempt)
        if self.counts:
            self.collector.emit_batch(batch_of([self.rows]))


class ArrowGather(ArrowPass):
    """Keeps batches, and emits them as one table when it finishes."""

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        super().prepare(conf, context, collector, batch_id)
        self.batches: list[pa.RecordBatch] = []

    def execute_batch(self, batch: pa.RecordBatch) -> None:
        self.fault.strike("execute", self.attempt)
        self.batches.append(batch)

    def finish_batch(self) -> None:
        self.fault.strike("finish_batch", self.attempt)
        if self.batches:
            self.collector.emit_batch(pa.Table.from_batches(self.batches))


class ArrowStore(ArrowTransactionalBolt, ICommitter):
    """Writes the values of a batch into a ledger, once a transaction; emits how many, as a batch."""

    gathers: Sequence[str] | None = ("batches",)

    def __init__(self, ledger: str, fault: Fault = NO_FAULT) -> None:
        self.ledger = ledger
        self.fault = fault

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "value"))

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        self.conf, self.context, self.collector, self.attempt = conf, context, collector, batch_id
        self.batches: list[pa.RecordBatch] = []
        self.fault.strike("prepare", batch_id)

    def execute_batch(self, batch: pa.RecordBatch) -> None:
        self.fault.strike("execute", self.attempt)
        self.batches.append(batch)

    def finish_batch(self) -> None:
        self.fault.strike("before", self.attempt)
        values = [value for batch in self.batches for value in batch.column("value").to_pylist()]
        LEDGERS[self.ledger].finished.append(self.attempt)
        LEDGERS[self.ledger].apply(str(self.context.this_task_index), self.attempt.transaction_id, values)
        self.collector.emit_batch(batch_of([len(values)]))
        self.fault.strike("after", self.attempt)


class ArrowStoreWithLock(ArrowStore):
    """Opens in `prepare` what cannot travel."""

    gathers = None

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        super().prepare(conf, context, collector, batch_id)
        self.lock = threading.Lock()


class ArrowTrail(ArrowTransactionalBolt):
    """Notes in a ledger who finished, with the values it had then. Emits its name while it executes, and at the end."""

    def __init__(self, ledger: str, name: str) -> None:
        self.ledger = ledger
        self.name = name

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "value"))

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        self.collector, self.attempt = collector, batch_id
        self.values: list[Any] = []

    def execute_batch(self, batch: pa.RecordBatch) -> None:
        self.values += batch.column(0).to_pylist()
        self.collector.emit_batch(batch_of([self.name.lower()]))

    def finish_batch(self) -> None:
        LEDGERS[self.ledger].trail.append((self.attempt.transaction_id, self.name, sorted(map(str, self.values))))
        self.collector.emit_batch(batch_of([self.name]))


class ArrowDirect(ArrowGather):
    """Emits each value to the task that it names: value v to task v mod n of 'store'."""

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "value"), direct=True)

    def finish_batch(self) -> None:
        tasks = self.context.component_tasks("store")
        for batch in self.batches:
            for value in batch.column(0).to_pylist():
                self.collector.emit_direct(tasks[value % len(tasks)], [self.attempt, value])


class ArrowCommittingTrail(ArrowTrail, ICommitter):
    """An `ArrowTrail` that is a committer."""


class BasicArrow(BaseBasicBolt):
    """A BasicBolt that emits a batch, and a row, for each tuple."""

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "value"))

    def execute(self, tup: Tuple, collector: Any) -> None:
        collector.emit([tup[0], tup[1]])
        collector.emit_batch(batch_of([tup[1] + 1000, tup[1] + 2000]))
        collector.emit_batch(batch_of([1]).slice(1))


class ByParity(CustomStreamGrouping):
    """Even numbers go to the first task; of the odd ones, those above 30 to all, the others to none."""

    def prepare(self, context: Any, stream: Any, target_tasks: Sequence[int]) -> None:
        self.tasks = target_tasks

    def choose_tasks(self, task_id: int, values: Sequence[Any]) -> Sequence[int]:
        assert isinstance(values[0], TransactionAttempt)
        return self.tasks[:1] if values[1] % 2 == 0 else self.tasks if values[1] > 30 else []


class _ArrowEmitter:
    def __init__(self, ranges: Ranges) -> None:
        self.ranges = ranges

    def emit_partition_batch_new(self, attempt: TransactionAttempt, collector: Any, partition: int, last: Any) -> Any:
        start = 0 if last is None else last[1]
        self.emit_partition_batch(attempt, collector, partition, [start, start + self.ranges.rows])
        return [start, start + self.ranges.rows]

    def emit_partition_batch(self, attempt: TransactionAttempt, collector: Any, partition: int, metadata: Any) -> None:
        self.ranges.fault.strike("emit", attempt)
        collector.emit_batch(batch_of([100 * partition + offset for offset in range(*metadata)]))

    def close(self) -> None: ...


class ArrowPartitionedSpout(PartitionedSpout):
    """Emits 100 · partition + offset, as batches."""

    def get_emitter(self, conf: Any, context: Any) -> Any:
        return _ArrowEmitter(self.ranges)


class _ArrowOpaqueEmitter(ChangingOpaqueEmitter):
    spout: ArrowOpaqueSpout

    def emit_partition_batch(self, attempt: TransactionAttempt, collector: Any, partition: int, last: Any) -> Any:
        start = 0 if last is None else last
        if self.spout.gone:
            return None
        taken = self.spout.available[start:][: self.spout.take]
        if self.spout.as_rows:
            for value in taken:
                collector.emit([attempt, value])
        for i in () if self.spout.as_rows else range(0, len(taken), self.spout.cut):
            collector.emit_batch(batch_of(taken[i : i + self.spout.cut]))
        return start + len(taken)


class ArrowOpaqueSpout(ChangingOpaqueSpout):
    """Emits batches of `cut` rows; or rows, as an earlier version of it did, or a later one does."""

    cut = 1000
    as_rows = False
    as_rows_later = False

    def get_emitter(self, conf: Any, context: Any) -> Any:
        return _ArrowOpaqueEmitter(self)
