"""SlotReport: what one slot of one stage tells the driver, and its bytes, which only Spark's own channel carries.

A wave of small batches has thousands of results, each of some objects: as plain tuples they take a third of the time.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from typing import Any

import cloudpickle

from stormline.runtime.messages.wave import AttemptResult, DeferredTask, PartitionBatch
from stormline.runtime.tuples.blocks import FOR_DRIVER
from stormline.runtime.tuples.delivery import Delivery
from stormline.runtime.tuples.packing import Packed
from stormline.topology.attempt import TransactionAttempt


@dataclass(slots=True)
class SlotReport:
    """What one slot of one stage tells the driver at its end.

    `busy_secs`: what it worked, waiting not counted. `rows_of`: tuples that it received, by its own stage, and those
    that it kept for the commit phase, by the stage that would have received them. `execution`: which of this slot this
    was; `read_from`: those of other slots whose blocks it read, by (stage, slot). `overfull`: stages left out for which
    it would have had to keep more than it may.
    """

    stage: int
    slot: int
    execution: bytes
    attempts: list[AttemptResult]
    busy_secs: float = 0.0
    rows_of: dict[int, int] = field(default_factory=dict)
    read_from: dict[tuple[int, int], bytes] = field(default_factory=dict)
    overfull: set[int] = field(default_factory=set)


def pack_report(report: SlotReport) -> bytes:
    """Return a report as a block for the driver."""
    plain = (
        report.stage,
        report.slot,
        report.execution,
        [_plain_result(result) for result in report.attempts],
        report.busy_secs,
        report.rows_of,
        report.read_from,
        report.overfull,
    )
    # Metadata, and what failed, may be of a class of the script, which only cloudpickle can send.
    packed: bytes = cloudpickle.dumps(plain, protocol=5)
    return bytes([FOR_DRIVER]) + packed


def read_report(block: bytes) -> SlotReport:
    """Return a report that came back in Spark's own channel."""
    stage, slot, execution, attempts, *rest = pickle.loads(memoryview(block)[1:])
    return SlotReport(stage, slot, execution, [_result(plain) for plain in attempts], *rest)


def _plain_result(result: AttemptResult) -> tuple[Any, ...]:
    attempt = result.attempt
    return (
        attempt.transaction_id,
        attempt.attempt_id,
        result.failure,
        {of: (part.metadata, part.rows, part.checksum, part.gave) for of, part in result.partitions.items()},
        result.rows,
        {task: (deferred.gathered, _plain_deliveries(deferred)) for task, deferred in result.deferred.items()},
        result.metrics,
        result.handles,
    )


def _plain_deliveries(deferred: DeferredTask) -> list[tuple[Any, ...]]:
    kept: list[tuple[Any, ...]] = []
    for edge, source, target, packed in deferred.tuples:
        assert isinstance(packed, Packed), "what waits for its commit is packed"
        kept.append((edge, source, target, *packed))
    return kept


def _result(plain: tuple[Any, ...]) -> AttemptResult:
    txid, attempt_id, failure, partitions, rows, deferred, metrics, handles = plain
    return AttemptResult(
        TransactionAttempt(txid, attempt_id),
        failure,
        {of: PartitionBatch(*part) for of, part in partitions.items()},
        rows,
        {
            task: DeferredTask(gathered, [Delivery(e, s, t, Packed(*packed)) for e, s, t, *packed in deliveries])
            for task, (gathered, deliveries) in deferred.items()
        },
        metrics,
        handles,
    )
