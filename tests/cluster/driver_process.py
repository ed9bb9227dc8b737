"""A `stormline run` in a process of its own, to be killed as in life: the driver alone, never what it started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil

END_SECS = 60.0


class DriverProcess:
    """Runs a target until it ends or is killed. What it prints is added to the file `output`."""

    def __init__(self, target: str, state_dir: Path, output: Path, env: Mapping[str, str], *more: str) -> None:
        self._output = output.open("ab")
        options = ["--state-dir", str(state_dir), "--master", "local[2]", "--progress", "none", *more]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "stormline.cli.main", "run", target, *options],
            cwd=Path(__file__).parents[2],
            env={**os.environ, **env},
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
        )
        self._started: dict[int, psutil.Process] = {}

    def wait_until(self, condition: Callable[[], bool], timeout_secs: float) -> bool:
        """Wait for a condition or the end of the process; return whether the condition holds."""
        deadline = time.monotonic() + timeout_secs
        while self.exit_code is None and time.monotonic() < deadline:
            self._look_for_children()
            if condition():
                return True
            time.sleep(0.02)
        return condition()

    @property
    def exit_code(self) -> int | None:
        """None while it runs; -9 after a SIGKILL."""
        return self._process.poll()

    @property
    def pid(self) -> int:
        """The driver's process id."""
        return self._process.pid

    def kill(self) -> None:
        """Kill the driver alone, by SIGKILL."""
        self._look_for_children()
        self._process.kill()
        assert self._process.wait(END_SECS) == -signal.SIGKILL

    def end(self, timeout_secs: float) -> int:
        """Wait for the end of the process and return its exit code."""
        self.wait_until(lambda: False, timeout_secs)
        code = self.exit_code
        if code is None:
            self.kill()
            raise AssertionError(f"the driver has not ended within {timeout_secs} s")
        return code

    def close(self) -> list[psutil.Process]:
        """Kill what is left, if anything; return what did not end by itself within a while."""
        if self.exit_code is None:
            self.kill()
        self._output.close()
        deadline = time.monotonic() + END_SECS
        while (left := self._left()) and time.monotonic() < deadline:
            time.sleep(0.05)
        for process in left:
            process.kill()
        return left

    def _left(self) -> list[psutil.Process]:
        """Return what still runs. Not by psutil's wait: that fails where a thread has got the number of one of them."""
        left = []
        for process in self._started.values():
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                    left.append(process)
        return left

    def _look_for_children(self) -> None:
        try:
            for child in psutil.Process(self._process.pid).children(recursive=True):
                self._started.setdefault(child.pid, child)
        except psutil.Error:
            pass  # it has just ended
