"""Progress: what a running topology tells of itself, once a wave and whenever it is asked; totals of its metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stormline.runtime.world.world import World
from stormline.topology.readings import Readings, merge_into


class MetricTotals:
    """Adds readings up. Usable from any thread."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._readings: Readings = {}
        self._lock = world.lock()
        self._started = world.monotonic()

    def add(self, readings: Readings) -> None:
        """Add what was counted for one attempt that counts."""
        if readings:
            with self._lock:
                merge_into(self._readings, readings)

    def values(self) -> dict[str, dict[str, Any]]:
        """Return the values of all metrics, by component and name."""
        if not self._readings:
            return {}
        with self._lock:
            readings = sorted(self._readings.items(), key=lambda item: item[0])
        elapsed_secs = self._world.monotonic() - self._started
        values: dict[str, dict[str, Any]] = {}
        for (component, name), reading in readings:
            values.setdefault(component, {})[name] = reading.value(elapsed_secs)
        return values


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One look at a running topology: `TopologyHandle.snapshot` returns it, and `on_wave` is given it.

    Attributes:
        topology (str): id of the topology.
        txid_committed (int): the last committed txid, in this run or an earlier one; 0 before the first.
        transactions (int): number of transactions committed in this run.
        tuples (int): number of tuples that the spout emitted for these.
        processing (int): number of transactions that are being processed.
        replays (int): number of attempts that have failed in this run, with those of later transactions that failed
            with them.
        waves (int): number of waves (micro-batches) that have ended in this run.
        elapsed_secs (float): seconds since the start of the run.
        transactions_per_sec (float): mean number of transactions committed a second.
        tuples_per_sec (float): mean number of these tuples a second.
        metrics (Mapping[str, Mapping[str, Any]]): what metrics of user code have counted for these transactions, by
            component and name.
    """

    topology: str
    txid_committed: int
    transactions: int
    tuples: int
    processing: int
    replays: int
    waves: int
    elapsed_secs: float
    transactions_per_sec: float
    tuples_per_sec: float
    metrics: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(slots=True)
class Progress:
    """Counts of one run; written by the topology's own thread only.

    `txid_found` is the transaction that was committed before it. What it tells of is what it has counted: for a moment
    the commit queue may know of more.
    """

    world: World
    topology: str
    txid_found: int = 0
    transactions: int = 0
    tuples: int = 0
    processing: int = 0
    replays: int = 0
    waves: int = 0
    started: float = field(init=False)
    on_wave: Callable[[Snapshot], None] | None = None
    metrics: MetricTotals = field(init=False)

    def __post_init__(self) -> None:
        self.started = self.world.monotonic()
        self.metrics = MetricTotals(self.world)

    @property
    def txid_committed(self) -> int:
        """The last committed transaction that is counted."""
        return self.txid_found + self.transactions

    def committed(self, tuples: int) -> None:
        """Count one committed transaction."""
        self.transactions += 1
        self.tuples += tuples

    def wave_ended(self) -> None:
        """Count one wave, and tell whoever listens."""
        self.waves += 1
        if self.on_wave is not None:
            self.on_wave(self.snapshot())

    def snapshot(self) -> Snapshot:
        """Return the counts as they are now, with the averages since the start."""
        elapsed = max(self.world.monotonic() - self.started, 1e-9)
        return Snapshot(
            topology=self.topology,
            txid_committed=self.txid_committed,
            transactions=self.transactions,
            tuples=self.tuples,
            processing=self.processing,
            replays=self.replays,
            waves=self.waves,
            elapsed_secs=round(elapsed, 3),
            transactions_per_sec=round(self.transactions / elapsed, 1),
            tuples_per_sec=round(self.tuples / elapsed, 1),
            metrics=self.metrics.values(),
        )
