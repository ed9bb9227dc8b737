"""A database server of a test run: on a free port of loopback, its data in a folder of its own."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from tests.chaos.processes import start, wait_until
from tests.services.free_port import free_port

END_SECS = 30.0


class DatabaseServer(ABC):
    """One server: what all of them can do, and can be done to them.

    `user`: whom it runs as where we are root, who has no database.
    """

    name: str
    start_secs = 30.0
    ends_at = signal.SIGTERM
    user = ""

    def __init__(self, log: Path, env: Mapping[str, str] | None = None) -> None:
        self._log = log
        self._env = env or {}
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = Path(tempfile.mkdtemp(prefix="stormline-db-"))
        self._as_user: dict[str, Any] = {}
        if self.user and os.getuid() == 0:
            found = pwd.getpwnam(self.user)
            os.chown(self._folder, found.pw_uid, found.pw_gid)
            self._as_user = {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
        self.port = free_port()

    @property
    def data(self) -> Path:
        """Its data."""
        return self._folder / "data"

    @abstractmethod
    def create(self) -> None:
        """Make its data, start it, and make what all tests need."""

    @abstractmethod
    def _command(self) -> Sequence[str | Path]:
        """Return what starts it."""

    @abstractmethod
    def answers(self) -> bool:
        """Return whether it takes connections."""

    def start(self) -> None:
        """Start it, and wait until it answers. The calling thread must outlive it."""
        self._process = start(self._command(), self._log, self._env, cwd=self._folder, **self._as_user)
        wait_until(lambda: self.answers() or self.process.poll() is not None, self.start_secs)
        assert self.answers(), f"{self.name} does not answer: {self._log.read_text()[-2000:]}"

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """Its process."""
        assert self._process is not None
        return self._process

    def backends(self) -> list[psutil.Process]:
        """Return the processes that it has started, if it starts any."""
        assert self._process is not None
        with contextlib.suppress(psutil.NoSuchProcess):
            return list(psutil.Process(self._process.pid).children(recursive=True))
        return []

    def kill(self) -> None:
        """End it as a crash would."""
        if self._process is not None:
            backends = self.backends()
            self._process.kill()
            for process in backends:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            self._process.wait()
            psutil.wait_procs(backends, timeout=10)
            self._process = None

    def pause(self) -> None:
        """Let it answer nothing, and connections stay."""
        for process in [psutil.Process(self.process.pid), *self.backends()]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.suspend()
                while process.status() not in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE):  # until then it may answer
                    time.sleep(0.001)

    def resume(self) -> None:
        """Let it go on."""
        for process in [*self.backends(), psutil.Process(self.process.pid)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()

    def shut_down(self) -> None:
        """End it in good order."""
        if self._process is not None:
            self._process.send_signal(self.ends_at)
            try:
                self._process.wait(END_SECS)
            except subprocess.TimeoutExpired:
                self.kill()
            self._process = None

    def stop(self) -> None:
        """End it for good, and remove its data."""
        self.shut_down()
        shutil.rmtree(self._folder, ignore_errors=True)

    # ------------------------------------------------------------------------------------ copies

    def keep_copy(self) -> None:
        """Keep a copy of its data as they are now."""
        self._replaced(self._folder / "copy", self.data)

    def bring_back_copy(self) -> None:
        """Let it have the data of the copy again, as after a disk was lost."""
        self._replaced(self.data, self._folder / "copy")

    def _replaced(self, target: Path, source: Path) -> None:
        self.shut_down()
        shutil.rmtree(target, ignore_errors=True)
        subprocess.run(["cp", "-a", source, target], check=True)
        self.start()
