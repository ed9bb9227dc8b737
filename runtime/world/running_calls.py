"""Calls: the calls of user code that run in this process now, for which attempt, and where they stand."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from stormline.runtime.world.thread_stack import place_of
from stormline.runtime.world.world import World
from stormline.topology.attempt import TransactionAttempt


class CallReport(NamedTuple):
    """What is told of a call that runs. `secs`: for how long."""

    component: str
    task: int | None
    attempt: TransactionAttempt
    secs: float
    text: str


RunningCall = tuple[str, int | None, str, TransactionAttempt, float]
"""A call that runs: component, task, what of it, attempt, and since when. A plain tuple: one is made for each call."""


class Calls:
    """Knows, by thread, the call of user code that has begun last and not ended; one may be within another.

    A call is of many tuples, so that it costs nothing a tuple.
    """

    def __init__(self, world: World) -> None:
        self.monotonic = world.monotonic
        """The clock by which calls are noted."""
        self.running: dict[int, RunningCall | None] = {}
        """By thread. `run_guarded` writes it, for its own thread; None stays where there was one."""

    def reports(self, attempts: Collection[TransactionAttempt] | None = None, secs: float = 0.0) -> list[CallReport]:
        """Return the calls that run, of these attempts or of all, for so long at least: the longest first."""
        found = []
        for thread, call in self.running.copy().items():
            if call is None:
                continue
            # Where one is within another, the inner one is the one that waits for nobody.
            component, task, where, attempt, begun = call
            took = self.monotonic() - begun
            if took >= secs and (attempts is None or attempt in attempts):
                who = f"{where} of {component!r}" + ("" if task is None else f", task {task},")
                text = f"{who} for {took:.1f} s, in transaction {attempt}, at {place_of(thread)}"
                found.append(CallReport(component, task, attempt, took, text))
        return sorted(found, key=lambda report: -report.secs)


def told(reports: Collection[CallReport], reports_max: int = 3) -> str:
    """Return the longest calls as one text."""
    more = len(reports) - reports_max
    texts = [report.text for report in list(reports)[:reports_max]]
    return "; ".join(texts + ([f"{more} more"] if more > 0 else []))
