"""Where the data comes from: partitions of offsets, which arrive, vanish and come back; and their spouts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stormline import (
    FailedException,
    Fields,
    ICommitterTransactionalSpout,
    IOpaquePartitionedTransactionalSpout,
    IPartitionedTransactionalSpout,
    ITransactionalSpout,
    TransactionAttempt,
)
from tests.simulation.databases import token_of
from tests.simulation.faults import Faults
from tests.simulation.world import world

TAKE_MAX = 3


class Source:
    """Partition p holds the offsets 0, 1, … up to `ends[p]`. `hidden`: partitions that cannot be read now."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self.ends = [2 + faults.below(5) for _ in range(1 + faults.below(3))]
        self.hidden: set[int] = set()

    def more(self) -> None:
        """Let data arrive, sometimes in a new partition."""
        if self._faults.chance(0.2) and len(self.ends) < 4:
            self.ends.append(1 + self._faults.below(5))
        else:
            self.ends[self._faults.below(len(self.ends))] += 1 + self._faults.below(4)

    def present(self) -> int:
        """Return how many partitions are there: one that is hidden hides those after it as well."""
        return min(self.hidden, default=len(self.ends))

    def end(self, partition: int) -> int:
        """Return where a partition ends."""
        return self.ends[partition] if partition < len(self.ends) else 0


def end_of(metadata: Any) -> int:
    """Return the offset after a partition's batch."""
    return 0 if metadata is None else int(metadata[1])


class PlainCoordinator:
    """Defines batches as ranges by partition."""

    def __init__(self) -> None:
        self.ends: dict[int, int] = {}

    def resume(self, prev_metadata: Any) -> None:
        self.ends = {p: end for p, _, end in prev_metadata or []}

    def is_ready(self) -> bool:
        fail_on_order("coordinator: failed")
        sleep_on_order("coordinator: hangs")
        return any(end > self.ends.get(p, 0) for p, end in enumerate(world().source.ends))

    def initialize_transaction(self, txid: int, prev_metadata: Any) -> Any:
        fail_on_order("coordinator: failed")
        before = {p: end for p, _, end in prev_metadata or []}
        ranges = []
        for p, end in enumerate(world().source.ends):
            first = before.get(p, 0)
            ranges.append([p, first, min(end, first + 1 + world().faults.below(TAKE_MAX))])
        self.resume(ranges)
        return ranges

    def close(self) -> None: ...


class PartitionedCoordinator:
    """Says how many partitions there are, and whether rows are left."""

    def num_partitions(self) -> int:
        fail_on_order("coordinator: failed")
        return len(world().source.ends)

    def is_ready_after(self, positions: Mapping[int, Any], batches_ahead: int) -> bool:
        fail_on_order("coordinator: failed")
        sleep_on_order("coordinator: hangs")
        ahead = batches_ahead * TAKE_MAX
        return any(end > end_of(positions.get(p)) + ahead for p, end in enumerate(world().source.ends))

    def close(self) -> None: ...


def fail_on_order(kind: str, bug: str | None = None) -> None:
    """Raise FailedException if it is time; or an error that stops the topology."""
    if world().faults.strikes(kind):
        raise FailedException(kind)
    if bug is not None and world().faults.strikes(bug):
        raise ZeroDivisionError(bug)


def sleep_on_order(kind: str) -> None:
    """Hang for a while, if it is time, where that holds up nobody else; perhaps longer than anybody waits."""
    here = world()
    if here.executing is None and here.faults.strikes(kind):
        secs = here.faults.long_secs()
        here.expect(secs)
        here.sleep(secs)


class Emitter:
    """Emits for any kind of spout."""

    def __init__(self, context: Any) -> None:
        self.context = context
        self.index = context.this_task_index
        self.tasks = len(context.component_tasks(context.this_component_id))
        self.kept: set[int] = set()
        self.cleaned = 0

    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: Any) -> None:
        self.kept.add(attempt.transaction_id)
        world().oracle.emits(attempt, self.cleaned, self.kept)
        for partition, first, end in metadata:
            if partition % self.tasks == self.index:
                self._emit(attempt, collector, partition, first, end)

    def _emit(self, attempt: TransactionAttempt, collector: Any, partition: int, first: int, end: int) -> None:
        fail_on_order("emitter: failed")
        sleep_on_order("emitter: hangs")
        if first < end and partition in world().source.hidden:
            raise FailedException(f"partition {partition} cannot be read now")
        for offset in range(first, end):
            collector.emit([attempt, partition, offset, 0])

    def cleanup_before(self, txid: int) -> None:
        """Discard what it keeps of each batch before this one, as Storm's own executors do."""
        self.cleaned = max(self.cleaned, txid)
        self.kept = {kept for kept in self.kept if kept >= txid}

    def commit(self, attempt: TransactionAttempt) -> None:
        commit_id = self.context.commit_id(attempt)
        who = ("emitter", self.index, token_of(self.context, attempt))
        world().oracle.commit_begins(*who, commit_id)
        try:
            sleep_on_order("committer: hangs")
        finally:
            world().oracle.commit_ends(*who)

    def close(self) -> None: ...


class PartitionedEmitter(Emitter):
    """What it took once it takes again."""

    def emit_partition_batch_new(self, attempt: TransactionAttempt, collector: Any, partition: int, last: Any) -> Any:
        first = end_of(last)
        end = max(first, min(world().source.end(partition), first + world().faults.below(TAKE_MAX + 1)))
        self._emit(attempt, collector, partition, first, end)
        return [first, end]

    def emit_partition_batch(self, attempt: TransactionAttempt, collector: Any, partition: int, metadata: Any) -> None:
        self._emit(attempt, collector, partition, *metadata)


class OpaqueEmitter(Emitter):
    """May take more or less the next time, and partitions come and go."""

    def num_partitions(self) -> int:
        return world().source.present()

    def emit_partition_batch(self, attempt: TransactionAttempt, collector: Any, partition: int, last: Any) -> Any:
        fail_on_order("emitter: failed")
        sleep_on_order("emitter: hangs")
        source, faults = world().source, world().faults
        if partition in source.hidden or (faults.on and faults.chance(0.05)):
            return None
        first = end_of(last)
        take = TAKE_MAX
        if faults.strikes("spout: read otherwise"):
            take = faults.below(TAKE_MAX + 1)
        # A batch that is frozen waits until it is read as it was: soon, when the faults have stopped.
        edition = int(faults.chance(0.2)) if faults.on else attempt.attempt_id >> partition & 1
        end = max(first, min(source.end(partition), first + take))
        for offset in range(first, end):
            collector.emit([attempt, partition, offset, edition])
        return [first, end]


class _Spout:
    emits_on_executors = True

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "partition", "offset", "edition"))


class PlainSpout(_Spout, ITransactionalSpout):
    """Batches by metadata of the coordinator."""

    def get_coordinator(self, conf: Any, context: Any) -> Any:
        return PlainCoordinator()

    def get_emitter(self, conf: Any, context: Any) -> Any:
        return Emitter(context)


class CommitterSpout(PlainSpout, ICommitterTransactionalSpout):
    """Its emitters commit as well."""

    emits_on_executors = False


class PartitionedSpout(_Spout, IPartitionedTransactionalSpout):
    """Batches by metadata of each partition."""

    def get_coordinator(self, conf: Any, context: Any) -> Any:
        return PartitionedCoordinator()

    def get_emitter(self, conf: Any, context: Any) -> Any:
        return PartitionedEmitter(context)


class OpaqueSpout(_Spout, IOpaquePartitionedTransactionalSpout):
    """Batches that may come out differently until their commits begin."""

    def get_coordinator(self, conf: Any, context: Any) -> Any:
        return PartitionedCoordinator()

    def get_emitter(self, conf: Any, context: Any) -> Any:
        return OpaqueEmitter(context)


class CommitterOpaqueSpout(OpaqueSpout, ICommitterTransactionalSpout):
    """Its emitters commit as well."""

    emits_on_executors = False


class DriverPlainSpout(PlainSpout):
    """Its emitters run in the driver."""

    emits_on_executors = False


class DriverPartitionedSpout(PartitionedSpout):
    """Its emitters run in the driver."""

    emits_on_executors = False


class DriverOpaqueSpout(OpaqueSpout):
    """Its emitters run in the driver."""

    emits_on_executors = False
