"""A real PostgreSQL on a free port of loopback, its data in a folder of its own."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil
import psycopg

from tests.chaos.ledger import SCHEMA
from tests.services.database_server import DatabaseServer

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",  # processes die here, the machine does not
    "max_connections": "60",
    "lock_timeout": "4s",
    "idle_in_transaction_session_timeout": "6s",
    "shared_buffers": "32MB",
    "max_prepared_transactions": "64",
}


def binaries() -> Path | None:
    """Return the folder of PostgreSQL's programs; None where it is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).parent
    return found[-1].parent if found else None


class PostgreSQL(DatabaseServer):
    """The server refuses to run as root, so it runs as `postgres` where we are."""

    name = "PostgreSQL"
    user = "postgres"
    ends_at = signal.SIGINT  # a fast shutdown

    def __init__(self, log: Path, env: Mapping[str, str] | None = None, **settings: str) -> None:
        super().__init__(log, env)
        self._settings = {**SETTINGS, **settings}

    def dsn(self, port: int | None = None, user: str = "chaos") -> str:
        """Return what to connect to: the server, or a proxy before it."""
        return f"host=127.0.0.1 port={port or self.port} user={user} dbname=postgres"

    def create(self) -> None:
        """Make the data folder, start the server, and make the tables."""
        command: list[str | Path] = [
            _program("initdb"),
            "-D",
            self.data,
            "-U",
            "chaos",
            "-A",
            "trust",
            "-N",
            "--locale=C",
        ]
        made = subprocess.run(command, capture_output=True, text=True, cwd=self._folder, **self._as_user)
        assert made.returncode == 0, made.stderr
        self.start()
        with psycopg.connect(self.dsn()) as db:
            db.execute(SCHEMA)

    def _command(self) -> Sequence[str | Path]:
        settings = [part for key, value in self._settings.items() for part in ("-c", f"{key}={value}")]
        return [_program("postgres"), "-D", self.data, "-p", str(self.port), *settings]

    def answers(self) -> bool:
        """Return whether the server takes connections."""
        try:
            psycopg.connect(self.dsn(), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def connections(self) -> list[psutil.Process]:
        """Return the processes that serve a connection of the topology's."""
        found = []
        for process in self.backends():
            with contextlib.suppress(psutil.NoSuchProcess):
                if "chaos postgres 127.0.0.1" in " ".join(process.cmdline()):
                    found.append(process)
        return found


def _program(name: str) -> Path:
    folder = binaries()
    assert folder is not None, "PostgreSQL is not installed: sh scripts/check_postgresql.sh"
    return folder / name
