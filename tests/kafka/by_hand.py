"""The engine's calls of a Kafka spout, by hand: batches one after another, each as often as a test wants."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stormline import FailedException, TransactionAttempt
from stormline.topology.metrics import Counter
from tests.kits.components import eventually

TRIED_SECS = 60.0


class Context:
    """What a spout asks its context."""

    topology_id = "by-hand"
    this_component_id = "spout"
    this_task_index = 0

    def __init__(self, columnar: bool) -> None:
        self._columnar = columnar
        self.counters: dict[str, Counter] = {}

    def register_counter(self, name: str) -> Counter:
        return self.counters.setdefault(name, Counter())

    def component_tasks(self, component: str) -> list[int]:
        return [1]

    def targets_are_columnar(self, stream: str = "default") -> bool:
        return self._columnar


class Rows:
    """A collector that keeps what is emitted."""

    def __init__(self) -> None:
        self.rows: list[list[Any]] = []
        self.batches: list[Any] = []
        self.others: dict[str, list[list[Any]]] = {}

    def emit_all(self, rows: list[list[Any]], stream: str = "default") -> None:
        kept = [row[1:] for row in rows]
        if stream == "default":
            self.rows += kept
        else:
            self.others.setdefault(stream, []).extend(kept)

    def emit_batch(self, batch: Any) -> None:
        self.batches.append(batch)
        self.rows += [list(row.values()) for row in batch.to_pylist()]


@dataclass
class Batch:
    """What the engine would have stored of a batch, and what it emitted."""

    described: Any
    before: dict[int, Any]
    present: int
    partitions: dict[int, Any] = field(default_factory=dict)
    gave: set[int] = field(default_factory=set)
    collected: Rows = field(default_factory=Rows)

    @property
    def rows(self) -> list[Any]:
        """Rows, those of one field as their values."""
        return [row[0] if len(row) == 1 else row for row in self.collected.rows]


class ByHand:
    """One coordinator, and one emitter, of a spout; `restart` makes new ones, as another driver would."""

    def __init__(self, spout: Any, columnar: bool = False) -> None:
        self._spout = spout
        self.context = Context(columnar)
        self.batches: list[Batch] = []
        self._begin()

    def _begin(self) -> None:
        self.coordinator = self._spout.get_coordinator({}, self.context)
        self.emitter = self._spout.get_emitter({}, self.context)
        self.coordinator.resume_partitions(self.batches[-1].described if self.batches else None)

    def restart(self) -> None:
        """Let another driver go on."""
        self.close()
        self._begin()

    @property
    def positions(self) -> dict[int, Any]:
        """Metadata of all partitions after the last batch."""
        if not self.batches:
            return {}
        last = self.batches[-1]
        return {**last.before, **last.partitions}

    def ready(self) -> bool:
        """Return whether there is a next batch."""
        try:
            return bool(self.coordinator.is_ready_after(self.positions, 0))
        except FailedException:
            return False

    def next(self) -> list[Any]:
        """Return the rows of the next batch."""
        described = self.coordinator.describe_partitions(self.batches[-1].described if self.batches else None)
        present = self.coordinator.num_partitions()
        batch = self._tried(described, self.positions, present, {})
        self.batches.append(batch)
        return batch.rows

    def next_when_ready(self) -> list[Any]:
        """Return the rows of the next batch, for which something is there, or comes."""
        eventually(self.ready, TRIED_SECS)
        return self.next()

    def next_twice(self) -> list[Any]:
        """Return the rows of the next batches, in which two attempts have begun: what is doubted is asked for again."""
        rows = self.next()
        return rows if self.batches[-1].partitions else self.next_when_it_looks_again()

    def next_when_it_looks_again(self) -> list[Any]:
        """Return the rows of the next batches, to the first to which a partition gives at least a position."""
        rows: list[Any] = []

        def given() -> bool:
            rows.extend(self.next())
            return bool(self.batches[-1].partitions)

        eventually(given, TRIED_SECS)
        return rows

    def again(self, number: int, frozen: bool = True) -> list[Any]:
        """Return the rows of a batch in a replay."""
        stored = self.batches[number]
        fixed = {p: stored.partitions[p] for p in stored.gave} if frozen else {}
        return self._tried(stored.described, stored.before, stored.present, fixed).rows

    def all(self) -> list[Any]:
        """Return the rows of all batches until there are no more."""
        rows = []
        while self.ready():
            rows += self.next()
        return rows

    def until(self, count: int) -> list[Any]:
        """Return the rows of the next batches, until there are so many: brokers tell late what was committed."""
        rows: list[Any] = []

        def enough() -> bool:
            rows.extend(self.all())
            return len(rows) >= count

        eventually(enough, TRIED_SECS)
        return rows

    def counted(self, name: str) -> int:
        """Return what a counter of the spout counts."""
        return self.context.counters[name]._count

    def close(self) -> None:
        """End the connections."""
        self.emitter.close()
        self.coordinator.close()

    def _tried(self, described: Any, before: dict[int, Any], present: int, stored: Mapping[int, Any]) -> Batch:
        """Emit a batch, as often as the spout wants it tried again."""
        deadline = time.monotonic() + TRIED_SECS
        while True:
            batch = Batch(described, before, present)
            try:
                self._emit(batch, stored)
            except FailedException:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            else:
                return batch

    def _emit(self, batch: Batch, stored: Mapping[int, Any]) -> None:
        attempt = TransactionAttempt(len(self.batches) + 1, 1)
        self.emitter.begin_batch(batch.described, batch.before, stored)
        partitioned = hasattr(self.emitter, "emit_partition_batch_new")
        for partition in range(batch.present if partitioned else self.emitter.num_partitions()):
            if partitioned and partition in stored:
                self.emitter.emit_partition_batch(attempt, batch.collected, partition, stored[partition])
                continue
            emit = self.emitter.emit_partition_batch_new if partitioned else self.emitter.emit_partition_batch
            metadata = emit(attempt, batch.collected, partition, batch.before.get(partition))
            if metadata is not None:
                batch.partitions[partition] = metadata
                batch.gave.add(partition)
