"""Lanes: as many parts at once as there are lanes, each a process that writes into a log of its own."""

from __future__ import annotations

import contextlib
import math
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.suite.parts import ROOT, Part

LOOK_SECS = 0.1
TOLD_SECS = 60.0
"""How often it is said what runs."""

END_SECS = 30.0
"""How long a part may take to end itself when it is told to, before it is killed."""

YIELDING = ("sh", "-c", '{ echo 19 > /proc/self/autogroup; } 2>/dev/null; exec nice -n 19 "$@"', "yielding")
"""Before a command: it gets the CPU that others leave. Linux may share it out by session, and heeds no `nice` then."""


@dataclass(frozen=True, slots=True)
class Job:
    """A part, the command that runs it, and the log that it writes."""

    part: Part
    command: tuple[str, ...]
    log: Path


@dataclass(frozen=True, slots=True)
class Ended:
    """How a job ended. `why`: why it was ended, or never begun; empty where it ended by itself."""

    job: Job
    code: int
    secs: float
    why: str = ""

    @property
    def failed(self) -> bool:
        """Whether it was ended, or says itself that it failed."""
        return bool(self.why or self.code)


@dataclass(slots=True)
class _Running:
    job: Job
    process: subprocess.Popen[bytes]
    begun: float
    why: str = ""
    told_to_end: float = 0.0

    def line(self) -> str:
        shares = re.findall(r"\[ *(\d+%)\]", self.job.log.read_text(errors="replace"))
        return f"{self.job.part.name} {' '.join(shares[-1:])}".strip()

    def secs(self) -> float:
        return time.monotonic() - self.begun

    def end(self, why: str) -> None:
        """Let it tidy up as on Ctrl-C, upon which pytest says where it was; kill what has not ended after END_SECS."""
        if not self.why:
            self.why, self.told_to_end = why, time.monotonic()
            _signal(self.process, signal.SIGINT)
        elif time.monotonic() - self.told_to_end > END_SECS:
            _signal(self.process, signal.SIGKILL)

    def ended(self) -> bool:
        """Return whether it has; nothing is left then of one that was told to."""
        if self.process.poll() is None:
            return False
        if self.why:
            _signal(self.process, signal.SIGKILL)
        return True


class Lanes:
    """Runs jobs in their order, and ends them all where it is interrupted.

    Args:
        lanes: how many at once. Beside them runs one of those that yield.
        say: is told what runs.
        within_secs: after so long nothing is begun any more, and what runs is ended.
    """

    def __init__(self, lanes: int, say: Callable[[str], None], within_secs: float = math.inf) -> None:
        self._lanes = lanes
        self._say = say
        self._within_secs = within_secs

    def run(self, jobs: Sequence[Job]) -> Generator[Ended]:
        """Run them; give each when it has ended, or cannot begin any more."""
        waiting, running = list(jobs), list[_Running]()
        begun = told = time.monotonic()
        with self._ended(running):
            while waiting or running:
                time_is_up = time.monotonic() - begun > self._within_secs
                while waiting and time_is_up:
                    yield Ended(waiting.pop(0), 0, 0.0, f"not begun: the {self._within_secs:.0f} s for all are over")
                while (job := self._next(waiting, running)) is not None:
                    waiting.remove(job)
                    running.append(self._begin(job))
                time.sleep(LOOK_SECS)
                for one in [one for one in running if one.ended()]:
                    running.remove(one)
                    yield Ended(one.job, one.process.returncode, one.secs(), one.why)
                for one in running:
                    if time_is_up:
                        one.end(f"ended: the {self._within_secs:.0f} s for all are over")
                    elif one.secs() > one.job.part.secs_max:
                        one.end(f"ended: it took more than {one.job.part.secs_max:.0f} s")
                if running and time.monotonic() - told > TOLD_SECS:
                    told = time.monotonic()
                    self._say(f"{told - begun:4.0f} s: {', '.join(one.line() for one in running)}")

    def _next(self, waiting: Sequence[Job], running: Sequence[_Running]) -> Job | None:
        """Return the first that may begin now."""
        yielding = sum(one.job.part.yields for one in running)
        held = any(one.job.part.first for one in running)
        free = {False: not held and len(running) - yielding < self._lanes, True: not yielding}
        return next((job for job in waiting if free[job.part.yields]), None)

    def _begin(self, job: Job) -> _Running:
        # In a session of its own, so that it can be ended with all that it has started.
        command = (*YIELDING, *job.command) if job.part.yields else job.command
        with job.log.open("wb") as log:
            process = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip
        return _Running(job, process, time.monotonic())

    @contextmanager
    def _ended(self, running: list[_Running]) -> Iterator[None]:
        """End what still runs at the end of the block."""
        try:
            yield
        finally:
            while running:
                for one in running:
                    one.end("stopped")
                time.sleep(LOOK_SECS)
                running[:] = [one for one in running if not one.ended()]


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
