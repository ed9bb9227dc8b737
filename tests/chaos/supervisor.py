"""The supervisor: keeps one driver running and another one waiting, as an operator's would."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests.chaos.design import Design
from tests.chaos.processes import ROOT, start, wait_until

READY_SECS = 300.0
"""Time to start Spark, its executors and their Python workers, on a machine that runs other things as well."""
END_SECS = 60.0
FALLEN_SECS = 180.0
"""Time that a driver which lost its topology may take to end by itself."""


@dataclass
class Life:
    """One driver process."""

    number: int
    process: subprocess.Popen[bytes]
    folder: Path
    born: float = field(default_factory=time.monotonic)
    driving: bool = False
    frozen: bool = False
    replaced: float | None = None

    @property
    def ended(self) -> bool:
        """Whether the process is gone."""
        return self.process.poll() is not None

    @property
    def ready(self) -> bool:
        """Whether it waits for a design, or has been given one."""
        return (self.folder / f"driver-{self.number}.json").exists()

    @property
    def application(self) -> str:
        """Spark's name for it; nothing before it is ready."""
        return str(self._read("json").get("application", ""))

    def end(self) -> dict[str, Any]:
        """Return how it ended."""
        if self.process.returncode is not None and self.process.returncode < 0:
            return {"error": signal.Signals(-self.process.returncode).name, "cause": "", "message": ""}
        return self._read("end") or {"error": f"exit code {self.process.returncode}", "cause": "", "message": ""}

    def replays(self) -> int:
        """Return how many replays it told of."""
        return int(self._read("replays").get("replays", 0))

    def cancelled(self) -> list[int]:
        """Return how many jobs there were each time that it cancelled all."""
        return list(self._read("cancelled").get("jobs", []))

    def jumped_secs(self) -> int:
        """Return by how much its wall clock is off, as it says."""
        return int(self._read("jumped").get("secs", 0))

    def _read(self, suffix: str) -> dict[str, Any]:
        with contextlib.suppress(FileNotFoundError):
            found: dict[str, Any] = json.loads((self.folder / f"driver-{self.number}.{suffix}").read_text())
            return found
        return {}

    def shift_clock(self, offset: str) -> None:
        """Let its wall clock jump, by so many seconds from the true time."""
        (self.folder / f"driver-{self.number}.clock").write_text(offset)
        self.signal(signal.SIGUSR2, group=False)

    def signal(self, number: int, group: bool) -> None:
        """Send a signal to the driver alone, or to its JVM too."""
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if group else os.kill)(self.process.pid, number)


class Supervisor:
    """Runs in a thread of its own from `start` to `stop`."""

    def __init__(
        self,
        folder: Path,
        env: dict[str, str],
        explain: Callable[[Life, dict[str, Any]], str | None],
    ) -> None:
        """`explain` is told how a driver ended, and returns why that is a violation, or None."""
        self._folder = folder
        self._env = env
        self._explain = explain
        self._lock = threading.RLock()
        self._lives: list[Life] = []
        self._numbers = 0
        self._design: Design | None = None
        self._closing = False
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="supervisor", daemon=True)
        self.driving: Life | None = None
        self.ends: Counter[str] = Counter()
        self.violations: list[str] = []
        self.replays = 0
        self.takeovers = 0

    def start(self) -> None:
        """Begin to start drivers."""
        self._thread.start()

    def drive(self, design: Design) -> None:
        """Let a driver run a topology, whatever happens to it, until `rest`."""
        with self._lock:
            self._design = design

    def rest(self) -> None:
        """Let the driver that runs end in good order."""
        with self._lock:
            self._design = self.driving = None
            asked = [life for life in self._lives if life.driving and life.replaced is None]
            for life in asked:
                life.replaced = time.monotonic()
                life.signal(signal.SIGTERM, group=False)
        for life in asked:
            if not wait_until(partial(getattr, life, "ended"), END_SECS):
                self.violations.append(f"driver {life.number} does not end within {END_SECS:.0f} s of SIGTERM")

    def rival(self) -> Life | None:
        """Let a driver that waits run the topology too, though another one does; None: none is ready."""
        with self._lock:
            life = next((life for life in self._lives if life.ready and not life.driving), None)
            if life is not None and self._design is not None:
                self._promote(life, self._design)
            return life

    def replace(self, life: Life) -> None:
        """Take the topology from a driver, without telling it, and give it to another one."""
        with self._lock:
            life.replaced = time.monotonic()
            if self.driving is life:
                self.driving = None

    def restore(self, life: Life) -> None:
        """Record that a driver that was to be replaced has kept the topology, or has got it before another one."""
        with self._lock:
            life.replaced = None

    def stop(self) -> None:
        """End all drivers, those that wait too."""
        self.rest()
        with self._lock:
            self._closing = True
            for life in self._lives:
                assert life.process.stdin is not None
                life.process.stdin.close()
        if not wait_until(lambda: not self._lives, END_SECS):
            self.violations.append(f"drivers {[life.number for life in self._lives]} do not end")
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        for life in self._lives:
            life.signal(signal.SIGKILL, group=True)
            life.process.wait()

    def fallen(self) -> list[Life]:
        """Return the drivers that were replaced and have not ended."""
        with self._lock:
            return [life for life in self._lives if life.replaced is not None and not life.ended]

    def _watch(self) -> None:
        while not self._stopping.is_set():
            try:
                with self._lock:
                    self._look()
            except Exception as error:
                self.violations.append(f"the supervisor itself failed: {error!r}")
                raise
            time.sleep(0.03)

    def _look(self) -> None:
        for life in [life for life in self._lives if life.ended]:
            self._buried(life)
        now = time.monotonic()
        for life in self._lives:
            late = life.replaced is not None and not life.frozen and now - life.replaced > FALLEN_SECS
            if late or (not life.ready and now - life.born > READY_SECS):
                self.violations.append(f"driver {life.number} hangs: " + ("it does not end" if late else "no Spark"))
                life.signal(signal.SIGKILL, group=True)
        waiting = [life for life in self._lives if not life.driving]  # a driver drives once
        if self.driving is None:  # one may have taken over by itself
            self.driving = next((life for life in self._lives if life.driving and life.replaced is None), None)
        if self.driving is None and self._design is not None:
            ready = next((life for life in waiting if life.ready), None)
            if ready is not None:
                self._promote(ready, self._design)
                self.driving = ready
                self.takeovers += 1
                waiting.remove(ready)
        if not waiting and not self._closing:
            self._bear()

    def _promote(self, life: Life, design: Design) -> None:
        assert life.process.stdin is not None
        life.driving = True
        with contextlib.suppress(BrokenPipeError):
            life.process.stdin.write(f"{design.to_json()}\n".encode())
            life.process.stdin.flush()

    def _bear(self) -> None:
        self._numbers += 1
        command = [sys.executable, "-m", "tests.chaos.driver"]
        command += [str(self._folder / "settings.json"), str(self._numbers)]
        log = self._folder / f"driver-{self._numbers}.log"
        process = start(command, log, self._env, cwd=ROOT, stdin=subprocess.PIPE)
        self._lives.append(Life(self._numbers, process, self._folder))

    def _buried(self, life: Life) -> None:
        self._lives.remove(life)
        assert life.process.stdin is not None
        life.process.stdin.close()
        if life is self.driving:
            self.driving = None
        end = life.end()
        self.ends[f"{end['error'] or 'in good order'}{': ' + end['cause'] if end['cause'] else ''}"] += 1
        self.replays += life.replays()
        why = self._explain(life, end)
        if why is not None:
            self.violations.append(f"driver {life.number} ended: {why}")
