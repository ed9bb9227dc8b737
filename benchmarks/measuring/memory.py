"""Memory of this process, of Spark's JVM and of its Python workers."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

import psutil

from benchmarks.figure import slope

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
        this = psutil.Process()
        jvms = [child for child in this.children() if _is_java(child)]
        workers = [worker for jvm in jvms for worker in _children(jvm)]
        return cls(this.memory_info().rss / MB, _rss(jvms), _rss(workers))


def slopes(looks: Sequence[tuple[int, Memory]]) -> dict[str, float]:
    """Return by kind of process the MB that it grew by in 1,000 transactions, from looks at (txid, memory)."""
    return {
        kind: 1_000 * slope([(txid, getattr(memory, kind)) for txid, memory in looks])
        for kind in ("driver", "jvm", "workers")
    }


def _is_java(process: psutil.Process) -> bool:
    try:
        return "java" in process.name()
    except psutil.NoSuchProcess:
        return False


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)  # type: ignore[no-any-return]
    except psutil.NoSuchProcess:
        return []


def _rss(processes: Sequence[psutil.Process]) -> float:
    total = 0.0
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            total += process.memory_info().rss
    return total / MB
