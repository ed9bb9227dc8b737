"""Spouts that misbehave on order, with the ledgers and faults of `tests.kits.components`. Importable on executors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stormline import (
    Fields,
    ICommitterTransactionalSpout,
    IOpaquePartitionedTransactionalSpout,
    IPartitionedTransactionalSpout,
    ITransactionalSpout,
    TransactionAttempt,
)
from tests.kits.components import LEDGERS, NO_FAULT, Fault


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
