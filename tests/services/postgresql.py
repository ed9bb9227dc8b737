"""A real PostgreSQL on a free port of loopback, its data in a folder of its own."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import psutil
import psycopg

from tests.chaos.ledger import SCHEMA
from tests.chaos.processes import start, wait_until
from tests.services.free_port import free_port

START_SECS = 30.0
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",  # processes die here, the machine does not
    "max_connections": "60",
    "lock_timeout": "4s",
    "idle_in_transaction_session_timeout": "6s",
    "shared_buffers": "32MB",
}


def binaries() -> Path | None:
    """Return the folder of PostgreSQL's programs; None where it is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).parent
    return found[-1].parent if found else None


class PostgreSQL:
    """The server refuses to run as root, so it runs as `postgres` where we are."""

    def __init__(self, log: Path, env: dict[str, str], **settings: str) -> None:
        folder = binaries()
        assert folder is not None, "PostgreSQL is not installed: sh scripts/check_postgresql.sh"
        self._bin = folder
        self._log = log
        self._env = env
        self._settings = {**SETTINGS, **settings}
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = Path(tempfile.mkdtemp(prefix="stormline-chaos-"))
        self._as_user: dict[str, Any] = {}
        if os.getuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self._folder, user.pw_uid, user.pw_gid)
            self._as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        self.port = free_port()

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def dsn(self, port: int | None = None) -> str:
        """Return what to connect to: the server, or a proxy before it."""
        return f"host=127.0.0.1 port={port or self.port} user=chaos dbname=postgres"

    def create(self) -> None:
        """Make the data folder, start the server, and make the tables."""
        command = [str(self._bin / "initdb"), "-D", str(self._data), "-U", "chaos", "-A", "trust", "-N", "--locale=C"]
        made = subprocess.run(command, capture_output=True, text=True, cwd=self._folder, **self._as_user)
        assert made.returncode == 0, made.stderr
        self.start()
        with psycopg.connect(self.dsn()) as db:
            db.execute(SCHEMA)

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        settings = [part for key, value in self._settings.items() for part in ("-c", f"{key}={value}")]
        command = [str(self._bin / "postgres"), "-D", str(self._data), "-p", str(self.port), *settings]
        self._process = start(command, self._log, self._env, cwd=self._folder, **self._as_user)
        wait_until(lambda: self.answers() or self.process.poll() is not None, START_SECS)
        assert self.answers(), f"PostgreSQL does not answer: {self._log.read_text()[-2000:]}"

    def answers(self) -> bool:
        """Return whether the server takes connections."""
        try:
            psycopg.connect(self.dsn(), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def kill(self) -> None:
        """End the server as a power cut would."""
        if self._process is not None:
            backends = self.backends()
            self._process.kill()
            for process in backends:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            self._process.wait()
            psutil.wait_procs(backends, timeout=10)
            self._process = None

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The server's process."""
        assert self._process is not None
        return self._process

    def backends(self) -> list[psutil.Process]:
        """Return the server's own processes: one for each connection, and some that work for all."""
        assert self._process is not None
        with contextlib.suppress(psutil.NoSuchProcess):
            return list(psutil.Process(self._process.pid).children(recursive=True))
        return []

    def connections(self) -> list[psutil.Process]:
        """Return the processes that serve a connection of the topology's."""
        found = []
        for process in self.backends():
            with contextlib.suppress(psutil.NoSuchProcess):
                if "chaos postgres 127.0.0.1" in " ".join(process.cmdline()):
                    found.append(process)
        return found

    def stop(self) -> None:
        """End the server for good, and remove its data."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)  # a fast shutdown
            try:
                self._process.wait(15)
            except subprocess.TimeoutExpired:
                self.kill()
            self._process = None
        shutil.rmtree(self._folder, ignore_errors=True)
