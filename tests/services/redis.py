"""A real Redis on a free port of loopback, its data in a folder of its own."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import redis

from tests.services.database_server import DatabaseServer


def binary() -> str | None:
    """Return Redis's server; None where it is not installed."""
    return shutil.which("redis-server")


class Redis(DatabaseServer):
    """A server with its log synced at each commit."""

    name = "Redis"

    def create(self) -> None:
        """Make the data folder, and start the server."""
        self.data.mkdir()
        self.start()

    def _command(self) -> Sequence[str | Path]:
        server = binary()
        assert server is not None, "Redis is not installed: sh scripts/check_redis.sh"
        settings = {"port": self.port, "bind": "127.0.0.1", "dir": self.data, "save": "", "databases": 500}
        options = [part for key, value in settings.items() for part in (f"--{key}", str(value))]
        return [server, *options, "--appendonly", "yes", "--appendfsync", "always"]

    def answers(self) -> bool:
        """Return whether the server takes commands."""
        try:
            with redis.Redis(port=self.port, socket_timeout=2) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False

    def url(self, database: int, port: int | None = None, user: str = "") -> str:
        """Return where a database is: on the server, or behind a proxy before it."""
        return f"redis://{user and user + '@'}127.0.0.1:{port or self.port}/{database}"
