"""Memory of this process, of Spark's JVM and of its Python workers."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

import psutil

from benchmarks.figure import slope
from benchmarks.measuring.processes import DRIVER, JVM, WORKERS, by_kind

MB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident memory in MB."""

    driver: float
    jvm: float
    workers: float

    @classmethod
    def now(cls) -> Memory:
        """Look at the processes that there are."""
        found = by_kind()
        return cls(_mb(found[DRIVER]), _mb(found[JVM]), _mb(found[WORKERS]))


def slopes(looks: Sequence[tuple[int, Memory]]) -> dict[str, float]:
    """Return by kind of process the MB that it grew by in 1,000 transactions, from looks at (txid, memory)."""
    return {
        kind: 1_000 * slope([(txid, getattr(memory, kind)) for txid, memory in looks])
        for kind in ("driver", "jvm", "workers")
    }


def _mb(processes: Sequence[psutil.Process]) -> float:
    total = 0.0
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            total += process.memory_info().rss
    return total / MB
