"""Lanes: as many parts at once as there are lanes, each a process that writes into a log of its own."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.suite.parts import ROOT, Part

LOOK_SECS = 0.1
TOLD_SECS = 60.0
"""How often it is said what runs."""

END_SECS = 30.0
"""How long a part may take to end itself when the suite is stopped."""


@dataclass(frozen=True, slots=True)
class Job:
    """A part, the command that runs it, and the log that it writes."""

    part: Part
    command: tuple[str, ...]
    log: Path


@dataclass(frozen=True, slots=True)
class Ended:
    """How a job ended."""

    job: Job
    code: int
    secs: float


@dataclass(frozen=True, slots=True)
class _Running:
    job: Job
    process: subprocess.Popen[bytes]
    begun: float

    def line(self) -> str:
        shares = re.findall(r"\[ *(\d+%)\]", self.job.log.read_text(errors="replace"))
        return f"{self.job.part.name} {' '.join(shares[-1:])}".strip()


class Lanes:
    """Runs jobs in their order, and ends them all where it is interrupted."""

    def __init__(self, lanes: int, say: Callable[[str], None], env: Mapping[str, str] | None = None) -> None:
        self._lanes = lanes
        self._say = say
        self._env = {**os.environ, **(env or {})}

    def run(self, jobs: Sequence[Job]) -> Generator[Ended]:
        """Run them; give each when it has ended."""
        waiting, running = list(jobs), list[_Running]()
        begun = told = time.monotonic()
        with self._ended(running):
            while waiting or running:
                while waiting and self._may_begin(waiting[0], running):
                    running.append(self._begin(waiting.pop(0)))
                time.sleep(LOOK_SECS)
                for one in [one for one in running if one.process.poll() is not None]:
                    running.remove(one)
                    yield Ended(one.job, one.process.returncode, time.monotonic() - one.begun)
                if running and time.monotonic() - told > TOLD_SECS:
                    told = time.monotonic()
                    self._say(f"{told - begun:4.0f} s: {', '.join(one.line() for one in running)}")

    def _may_begin(self, job: Job, running: Sequence[_Running]) -> bool:
        if job.part.alone:
            return not running
        return len(running) < self._lanes and not any(one.job.part.alone for one in running)

    def _begin(self, job: Job) -> _Running:
        # In a session of its own, so that it can be ended with all that it has started.
        with job.log.open("wb") as log:
            process = subprocess.Popen(
                job.command, cwd=ROOT, env=self._env, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip
        return _Running(job, process, time.monotonic())

    @contextmanager
    def _ended(self, running: list[_Running]) -> Iterator[None]:
        """Let what still runs at the end of the block tidy up as on Ctrl-C; then kill what is left of it."""
        try:
            yield
        finally:
            for one in running:
                _signal(one.process, signal.SIGINT)
            deadline = time.monotonic() + END_SECS
            for one in running:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    one.process.wait(max(0.0, deadline - time.monotonic()))
                _signal(one.process, signal.SIGKILL)
                one.process.wait()


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
