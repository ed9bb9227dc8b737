"""A real Redis on a free port of loopback, its data in a folder of its own."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import redis

from tests.chaos.processes import start, wait_until

START_SECS = 30.0


def binary() -> str | None:
    """Return Redis's server; None where it is not installed."""
    return shutil.which("redis-server")


class Redis:
    """A server with its log synced at each commit."""

    def __init__(self, log: Path) -> None:
        server = binary()
        assert server is not None, "Redis is not installed: sh scripts/check_redis.sh"
        self._server = server
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = Path(tempfile.mkdtemp(prefix="stormline-redis-"))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        settings = {"port": self.port, "bind": "127.0.0.1", "dir": self._folder, "save": "", "databases": 500}
        options = [part for key, value in settings.items() for part in (f"--{key}", str(value))]
        command = [self._server, *options, "--appendonly", "yes", "--appendfsync", "always"]
        self._process = start(command, self._log, {})
        assert wait_until(self.answers, START_SECS), f"Redis does not answer: {self._log.read_text()[-2000:]}"

    def answers(self) -> bool:
        """Return whether the server takes commands."""
        try:
            with redis.Redis(port=self.port, socket_timeout=2) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False

    def kill(self) -> None:
        """End the server as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """End the server for good, and remove its data."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)
