"""A wave: the attempts that one Spark job processes, and what comes back of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stormline.runtime.messages.sink_handle import Handles
from stormline.runtime.messages.wave_room import BYTES_MAX
from stormline.runtime.tuples.delivery import Delivery
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.readings import Readings


@dataclass(frozen=True, slots=True)
class PartitionBatch:
    """What defines one partition's share of a batch.

    `gave` is false where an opaque partition gave nothing: `metadata` is then its old position. `checksum` is the
    CRC-32 of the packed rows, or of the columns, of an opaque spout, else 0.
    """

    metadata: Any
    rows: int
    checksum: int = 0
    gave: bool = True

    def __reduce__(self) -> tuple[type[PartitionBatch], tuple[Any, ...]]:
        return PartitionBatch, (self.metadata, self.rows, self.checksum, self.gave)


@dataclass(frozen=True, slots=True)
class WaveAttempt:
    """One attempt to process.

    `stored` holds the partitions that an earlier attempt has fixed. `rows` is the batch's total where it is fixed.
    `frozen`: a commit effect may have happened, so the batch must be the same (law 2, sameness). `commit_id`: under
    which it commits, if it does. `decided`: bolts of which handles are on record; they write nothing (rule R3).
    """

    attempt: TransactionAttempt
    metadata: Any
    stored: Mapping[int, PartitionBatch] = field(default_factory=dict)
    rows: int | None = None
    frozen: bool = False
    commit_id: int = 0
    decided: frozenset[str] = frozenset()

    def __reduce__(self) -> tuple[type[WaveAttempt], tuple[Any, ...]]:
        of = (self.attempt, self.metadata, self.stored, self.rows, self.frozen, self.commit_id, self.decided)
        return WaveAttempt, of


@dataclass(frozen=True, slots=True)
class Wave:
    """Consecutive transactions, processed by one job.

    `committed`: the last txid committed when the wave began. `positions`: metadata of every partition before the
    first of them. `bytes_max`: what one slot may give back for the commit; `emitted_bytes_max`: what may be emitted in
    the driver.
    """

    number: int
    attempts: tuple[WaveAttempt, ...]
    committed: int = 0
    positions: Mapping[int, Any] = field(default_factory=dict)
    bytes_max: int = BYTES_MAX
    emitted_bytes_max: int = BYTES_MAX

    @property
    def commit_ids(self) -> dict[TransactionAttempt, int]:
        """Under which id each attempt commits, if it does."""
        return {wave_attempt.attempt: wave_attempt.commit_id for wave_attempt in self.attempts}

    @property
    def title(self) -> str:
        """What a person reads in Spark's UI."""
        first, last = self.attempts[0].attempt, self.attempts[-1].attempt
        txids = (
            f"txid {first.transaction_id}" if first == last else f"txids {first.transaction_id}–{last.transaction_id}"
        )
        return f"wave {self.number}, {txids}"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt failed.

    `fatal`: the topology must stop, with `traceback`. `counts`: whether it counts for topology.max.batch.attempts.
    `too_large`: nothing is wrong with it, but the wave had no room for it beside those before it.
    """

    component: str
    task: int | None
    message: str
    traceback: str = ""
    fatal: bool = False
    counts: bool = True
    exception: bytes | None = None
    too_large: bool = False


@dataclass(slots=True)
class DeferredTask:
    """What one task of a deferred bolt is given for the commit phase.

    What it `gathered` where it has executed on the executors, and the `tuples` that are to be executed at the commit.
    """

    gathered: bytes | None = None
    tuples: list[Delivery] = field(default_factory=list)


@dataclass(slots=True)
class AttemptResult:
    """What the processing phase of one attempt gave.

    `handles`: of what it has pre-committed in sinks, or of what was decided before where its batch is frozen.
    """

    attempt: TransactionAttempt
    failure: Failure | None = None
    partitions: dict[int, PartitionBatch] = field(default_factory=dict)
    rows: int = 0
    deferred: dict[int, DeferredTask] = field(default_factory=dict)
    metrics: Readings = field(default_factory=dict)
    handles: Handles = ()


@dataclass(slots=True)
class WaveResult:
    """What came back of a wave: a result for each of its attempts, in order.

    By stage: `busy_secs_of`, what its slots worked, together, and `rows_of`, the tuples that came for it. `overfull`:
    stages left out for which an attempt brought too many.
    """

    wave: Wave
    attempts: list[AttemptResult]
    busy_secs_of: dict[int, float] = field(default_factory=dict)
    rows_of: dict[int, int] = field(default_factory=dict)
    overfull: set[int] = field(default_factory=set)
