"""Calls: the calls of user code that run in this process now, for which attempt, and where they stand."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection
from typing import NamedTuple

from stormline.runtime.thread_stack import place_of
from stormline.topology.attempt import TransactionAttempt


class CallReport(NamedTuple):
    """What is told of a call that runs. `secs`: for how long."""

    component: str
    task: int | None
    attempt: TransactionAttempt
    secs: float
    text: str


class _Call(NamedTuple):
    component: str
    task: int | None
    where: str
    attempt: TransactionAttempt
    begun: float


class Calls:
    """Knows, by thread, the calls of user code that have begun and not ended; one may be within another.

    A call is of many tuples, so that it costs nothing a tuple.
    """

    def __init__(self) -> None:
        self._by_thread: dict[int, list[_Call]] = {}

    def begin(self, component: str, task: int | None, where: str, attempt: TransactionAttempt) -> None:
        """Take note that this thread calls user code."""
        call = _Call(component, task, where, attempt, time.monotonic())
        self._by_thread.setdefault(threading.get_ident(), []).append(call)

    def end(self) -> None:
        """Take note that the call that has begun last in this thread has ended."""
        thread = threading.get_ident()
        calls = self._by_thread[thread]
        calls.pop()
        if not calls:
            del self._by_thread[thread]

    def reports(self, attempts: Collection[TransactionAttempt] | None = None, secs: float = 0.0) -> list[CallReport]:
        """Return the calls that run, of these attempts or of all, for so long at least: the longest first."""
        found = []
        for thread, calls in list(self._by_thread.items()):
            for call in calls[-1:]:  # where one is within another, it is the one that waits for nobody
                took = time.monotonic() - call.begun
                if took >= secs and (attempts is None or call.attempt in attempts):
                    task = "" if call.task is None else f", task {call.task},"
                    text = f"{call.where} of {call.component!r}{task} for {took:.1f} s, in transaction {call.attempt}, "
                    text += f"at {place_of(thread)}"
                    found.append(CallReport(call.component, call.task, call.attempt, took, text))
        return sorted(found, key=lambda report: -report.secs)


def told(reports: Collection[CallReport], reports_max: int = 3) -> str:
    """Return the longest calls as one text."""
    more = len(reports) - reports_max
    texts = [report.text for report in list(reports)[:reports_max]]
    return "; ".join(texts + ([f"{more} more"] if more > 0 else []))
