"""InterpreterWatch: notices when this process ran no Python code beside one call, and which call that was.

A call of C code that holds the interpreter's lock (a regular expression, an extension) keeps all other threads from
running, among them the one that pings ZooKeeper.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from stormline.runtime.tasks.user_code import run_guarded
from stormline.runtime.world.clock import passed_secs
from stormline.runtime.world.thread_stack import FRAMES_MAX
from stormline.topology.config import ZOOKEEPER_SESSION_TIMEOUT_MS

WhySilent = Callable[[float], str]
"""Says what kept this process silent for longer than a session of so many seconds lasts; "" where nothing did."""

TICK_SECS = 0.5
GAPS_KEPT = 20
HEARD_SECS = 10.0
"""How much later one may hear that a session has ended: there must be a connection again to be told."""

BUSY_SHARE = 0.1
"""Share of a gap for which the process must have computed, to have been busy in one call: else it did not run. On a
machine that many share it is given no more."""


def never_silent(session_secs: float) -> str:
    """Know of nothing."""
    return ""


@dataclass(frozen=True, slots=True)
class _Gap:
    ended: float
    secs: float
    busy: bool
    where: str


class InterpreterWatch:
    """Watches from a thread that only sleeps, until `stop`: each time it wakes up late, others could not run either."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._gaps: list[_Gap] = []
        self._looked, self._worked, self._threads = passed_secs(), time.process_time(), _work_of_threads()
        threading.Thread(target=self._work, daemon=True, name="stormline-interpreter-watch").start()

    def stop(self) -> None:
        """Let the thread end."""
        self._stopped.set()

    def why_silent(self, session_secs: float) -> str:
        """Say what kept this process silent lately for longer than a session lasts; "" where nothing did."""
        self._look()
        lately = passed_secs() - 2 * session_secs - HEARD_SECS
        gaps = [gap for gap in self._gaps if gap.ended >= lately and gap.secs >= session_secs / 2]
        if not gaps:
            return ""
        gap = max(gaps, key=lambda gap: gap.secs)
        had = f"and had a session of {session_secs:g} s ({ZOOKEEPER_SESSION_TIMEOUT_MS})"
        if not gap.busy:
            return (
                f"no Python code of this process ran for {gap.secs:.0f} s, and it did not compute: it was stopped, or "
                f"the machine was, or one call waited that let nothing else run, not even a ping; {had}"
            )
        return (
            f"this process was busy for {gap.secs:.0f} s in one call that let no other Python code run, not even a "
            f"ping, {had}. Raise that setting above the longest such call (a server grants no more than its "
            f"maxSessionTimeout), or make the call in a process of its own. It was in {gap.where}"
        )

    def _work(self) -> None:
        while not self._stopped.wait(TICK_SECS):
            self._look()

    def _look(self) -> None:
        with self._lock:
            now = passed_secs()
            secs = now - self._looked - TICK_SECS
            late = secs > TICK_SECS
            places = _places() if late else {}  # before anything that lets the threads go on
            worked, threads = time.process_time(), _work_of_threads()
            if late:
                busy = worked - self._worked >= BUSY_SHARE * secs
                busiest = max(threads, key=lambda ident: threads[ident] - self._threads.get(ident, 0), default=0)
                self._gaps = [*self._gaps, _Gap(now, secs, busy, places.get(busiest, "a thread"))][-GAPS_KEPT:]
            self._looked, self._worked, self._threads = now, worked, threads


def _work_of_threads() -> dict[int, int]:
    """Return the ticks for which each thread has computed; empty where the system does not tell."""
    worked = {}
    for thread in threading.enumerate():
        try:
            fields = Path(f"/proc/self/task/{thread.native_id}/stat").read_text("utf-8", "replace").rpartition(")")[2]
            worked[thread.ident or 0] = sum(map(int, fields.split()[11:13]))
        except (OSError, ValueError):  # it has just ended, or this is not Linux
            continue
    return worked


def _places() -> dict[int, str]:
    """Say for each thread in which call of which component it is, as far as can be told, and its innermost lines."""
    places = {}
    for ident, frame in sys._current_frames().items():
        lines: list[str] = []
        call = ""
        walked: FrameType | None = frame
        while walked is not None and not call:
            code = walked.f_code
            # Of the thread that looks: where it was is what called the watch.
            if len(lines) < FRAMES_MAX and code.co_filename != __file__:
                lines.append(f'  File "{code.co_filename}", line {walked.f_lineno}, in {code.co_name}')
            if code is run_guarded.__code__:
                of = walked.f_locals["of"]
                call = f"{walked.f_locals['where']} of {of.component!r}, task {of.task}, "
            walked = walked.f_back
        places[ident] = "\n".join([f"{call}at", *reversed(lines)])
    return places
