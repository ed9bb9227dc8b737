"""One row of the fault matrix."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Open:
    """Nothing covers it, and why."""

    why: str


Covered = tuple[str, ...]
"""Kinds of faults, and node ids of tests."""

ONE_PROCESS = Open("the doubles have nothing that could fail so")


@dataclass(frozen=True, slots=True)
class Row:
    """One way to fail.

    Args:
        key: names the row; it stays when the text changes.
        fault: what happens.
        must: what must come of it.
        simulated: what covers it in one process, on doubles of Spark, ZooKeeper and databases: kinds of faults of
            tests/simulation/faults.py, and tests.
        real: what covers it with real processes: kinds of faults of tests/chaos/schedule.py, as "kind" or "kind:
            variant", and tests.
    """

    key: str
    fault: str
    must: str
    simulated: Covered | Open
    real: Covered | Open
