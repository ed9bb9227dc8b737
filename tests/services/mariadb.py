"""A real MariaDB on a free port of loopback, its data in a folder of its own."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pymysql

from tests.services.database_server import DatabaseServer


def binary() -> str | None:
    """Return MariaDB's server; None where it is not installed."""
    found = shutil.which("mariadbd") or shutil.which("mariadbd", path="/usr/sbin")
    return found if shutil.which("mariadb-install-db") else None


class MariaDB(DatabaseServer):
    """A server with one user, `stormline`, who may do everything and has no password."""

    name = "MariaDB"
    start_secs = 60.0
    user = "mysql"

    def __init__(self, log: Path, env: Mapping[str, str] | None = None, *options: str) -> None:
        super().__init__(log, env)
        self._options = options

    def create(self) -> None:
        """Make the data folder, start the server, and make the user."""
        command = [
            "mariadb-install-db",
            "--no-defaults",
            f"--datadir={self.data}",
            f"--tmpdir={self._folder}",
            "--skip-test-db",
            "--auth-root-authentication-method=normal",
        ]
        made = subprocess.run(command, capture_output=True, text=True, timeout=120, **self._as_user)
        assert made.returncode == 0, made.stdout + made.stderr
        self.start()
        with self.connected("root") as db, db.cursor() as cursor:
            cursor.execute("CREATE USER stormline@'127.0.0.1'")
            cursor.execute("GRANT ALL ON *.* TO stormline@'127.0.0.1' WITH GRANT OPTION")

    def _command(self) -> Sequence[str | Path]:
        server = binary()
        assert server is not None, "MariaDB is not installed: sh scripts/check_mariadb.sh"
        return [
            server,
            "--no-defaults",
            f"--datadir={self.data}",
            # Its own: a server that starts removes what it takes for left over there, another's tables among them, and
            # that one dies.
            f"--tmpdir={self._folder}",
            f"--socket={self._folder / 's'}",
            f"--pid-file={self._folder / 'pid'}",
            f"--port={self.port}",
            "--bind-address=127.0.0.1",
            "--skip-name-resolve",
            "--collation-server=utf8mb4_nopad_bin",
            "--character-set-server=utf8mb4",
            "--innodb-flush-log-at-trx-commit=2",  # processes die here, the machine does not
            "--innodb-buffer-pool-size=32M",
            *self._options,
        ]

    def connected(self, user: str = "stormline", **more: Any) -> Any:
        """Return a connection past every proxy."""
        return pymysql.connect(host="127.0.0.1", port=self.port, user=user, autocommit=True, ssl_disabled=True, **more)

    def answers(self) -> bool:
        """Return whether the server takes connections."""
        try:
            self.connected("root", connect_timeout=2, read_timeout=2).close()
        except pymysql.OperationalError:
            return False
        return True

    def url(self, database: str, port: int | None = None, user: str = "stormline") -> str:
        """Return where a database is: on the server, or behind a proxy before it."""
        return f"mysql://{user}@127.0.0.1:{port or self.port}/{database}"
