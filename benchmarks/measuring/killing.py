"""Killing: a driver that is killed by SIGKILL again and again, and started anew at once, as a supervisor would."""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import TracebackType

import psutil

from benchmarks.measuring.fresh import ROOT, end_tree

POLL_SECS = 0.005
LIFE_SECS_MAX = 300.0
PAUSE_SECS_MAX = 0.6
"""A driver is killed so long after it has committed, at most: in any phase of the next ones."""


class KilledDriver:
    """A command whose commits are seen in a SQLite database.

    A context manager that ends all that was started; entered again it goes on where it was ended.

    Args:
        last_txid: the query that gives the last committed transaction.
    """

    def __init__(
        self, command: Sequence[str], env: Mapping[str, str], database: Path, last_txid: str, output: Path
    ) -> None:
        self._command = command
        self._env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]), **env}
        self._database = database
        self._last_txid = last_txid
        self._output = output
        self._started: dict[int, psutil.Process] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._random = random.Random(6)

    def __enter__(self) -> KilledDriver:
        committed = self._committed()
        self._start()
        self._wait_beyond(committed)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._process is not None:
            end_tree(self._process.pid)
            self._process.wait()
        for process in self._started.values():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(self._started.values(), 10)
        self._started.clear()

    def secs_to_next_commit(self) -> float:
        """Kill the driver some time after its commit, start it anew; return the seconds until one more is committed."""
        assert self._process is not None
        time.sleep(self._random.uniform(0, PAUSE_SECS_MAX))
        with contextlib.suppress(psutil.NoSuchProcess):
            for process in psutil.Process(self._process.pid).children(recursive=True):
                self._started[process.pid] = process
        begun = time.perf_counter()
        self._process.kill()
        self._process.wait()
        committed = self._committed()
        self._start()
        self._wait_beyond(committed)
        return time.perf_counter() - begun

    def _start(self) -> None:
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                self._command, cwd=ROOT, env=self._env, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )

    def _committed(self) -> int:
        if not self._database.exists():
            return 0
        with closing(sqlite3.connect(self._database, timeout=20)) as db, contextlib.suppress(sqlite3.OperationalError):
            found = db.execute(self._last_txid).fetchone()
            return int(found[0] or 0) if found else 0
        return 0  # there is no table yet

    def _wait_beyond(self, txid: int) -> None:
        assert self._process is not None
        deadline = time.monotonic() + LIFE_SECS_MAX
        while self._committed() <= txid:
            said = self._output.read_text(errors="replace")[-2000:] if self._process.poll() is not None else ""
            if self._process.poll() is not None:
                raise RuntimeError(f"exit code {self._process.returncode} of {' '.join(self._command)}: {said}")
            if time.monotonic() > deadline:
                raise TimeoutError(f"{' '.join(self._command)} has committed nothing within {LIFE_SECS_MAX:g} s")
            time.sleep(POLL_SECS)
