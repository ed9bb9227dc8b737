"""Campaign: many seeds, in worker processes; what came of all of them, and of those that failed."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.simulation.simulator import Outcome, simulate

CHUNK = 50
"""Seeds that a process simulates at once; what they leave is collected in the end, which costs a sixth less time."""


@dataclass(slots=True)
class Summary:
    """What came of many seeds."""

    seeds: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    txids: int = 0
    replays: int = 0
    takeovers: int = 0
    turned_away: int = 0
    simulated_secs: float = 0.0
    elapsed_secs: float = 0.0
    failed: list[Outcome] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        """Count one seed."""
        self.seeds += 1
        self.faults += outcome.faults
        self.txids += outcome.txids
        self.replays += outcome.replays
        self.takeovers += outcome.takeovers
        self.turned_away += outcome.turned_away
        self.simulated_secs += outcome.simulated_secs
        if outcome.violation is not None:
            self.failed.append(outcome)

    def merge(self, other: Summary) -> None:
        """Count what another one has counted."""
        self.seeds += other.seeds
        self.faults += other.faults
        self.txids += other.txids
        self.replays += other.replays
        self.takeovers += other.takeovers
        self.turned_away += other.turned_away
        self.simulated_secs += other.simulated_secs
        self.failed += other.failed

    def text(self) -> str:
        """Return it for people."""
        faults = ", ".join(f"{kind} {count:,}" for kind, count in sorted(self.faults.items()))
        rate = self.seeds / max(self.elapsed_secs, 1e-9)
        return (
            f"{self.seeds:,} seeds in {self.elapsed_secs:.0f} s, {rate:.0f} seeds/s, {self.simulated_secs / 3600:,.1f} "
            f"simulated hours; {self.txids:,} transactions committed, {self.replays:,} replays, {self.takeovers:,} "
            f"take-overs, {self.turned_away:,} effects of zombies turned away, {len(self.failed)} violations\n"
            f"{self.faults.total():,} faults: {faults or 'none'}"
        )


def failure_text(outcome: Outcome, events: int = 40) -> str:
    """Return what a person needs of a seed that failed: the law, the last events, and how to see it again."""
    last = "\n".join(outcome.history[-events:])
    options = f"--seed {outcome.seed}" + ("" if outcome.faults_on else " --faults-off")
    return (
        f"{last}\n\nseed {outcome.seed} broke a law: {outcome.violation}\n"
        f"repeat it: .venv/bin/python -m tests.simulation {options}"
    )


def run_chunk(job: tuple[range, bool]) -> Summary:
    """Simulate some seeds in this process."""
    seeds, faults_on = job
    summary = Summary()
    for seed in seeds:
        summary.add(simulate(seed, faults_on))
    gc.collect()
    return summary


def prepare_process() -> None:
    """Make this process fit for many seeds."""
    gc.disable()
    logging.disable(logging.CRITICAL)


def _chunks(first: int, count: int, faults_on: bool) -> Iterator[tuple[range, bool]]:
    for begin in range(first, first + count, CHUNK):
        yield range(begin, min(begin + CHUNK, first + count)), faults_on


def run_campaign(
    first: int,
    count: int,
    processes: int = 2,
    faults_on: bool = True,
    on_progress: Callable[[Summary], None] = lambda summary: None,
) -> Summary:
    """Simulate `count` seeds from `first` on; stops early where many fail."""
    summary, begun = Summary(), time.monotonic()
    # Spawned: a process forked off a test's may have threads of Spark's in it.
    with multiprocessing.get_context("spawn").Pool(processes, prepare_process) as pool:
        for part in pool.imap_unordered(run_chunk, _chunks(first, count, faults_on)):
            summary.merge(part)
            summary.elapsed_secs = time.monotonic() - begun
            on_progress(summary)
            if len(summary.failed) >= 20:
                break
    summary.failed.sort(key=lambda outcome: outcome.seed)
    return summary
