"""A real MariaDB on a free port of loopback, its data in a folder of its own."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pymysql

from tests.chaos.processes import start, wait_until

START_SECS = 60.0


def binary() -> str | None:
    """Return MariaDB's server; None where it is not installed."""
    found = shutil.which("mariadbd") or shutil.which("mariadbd", path="/usr/sbin")
    return found if shutil.which("mariadb-install-db") else None


class MariaDB:
    """A server with one user, `stormline`, who may do everything and has no password."""

    def __init__(self, log: Path) -> None:
        server = binary()
        assert server is not None, "MariaDB is not installed: sh scripts/check_mariadb.sh"
        self._server = server
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = Path(tempfile.mkdtemp(prefix="stormline-db-"))
        self._user = ["--user=mysql"] if os.getuid() == 0 else []
        if os.getuid() == 0:
            user = pwd.getpwnam("mysql")
            os.chown(self._folder, user.pw_uid, user.pw_gid)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]

    def create(self) -> None:
        """Make the data folder, start the server, and make the user."""
        command = [
            "mariadb-install-db",
            "--no-defaults",
            f"--datadir={self._folder / 'data'}",
            f"--tmpdir={self._folder}",
            "--skip-test-db",
            "--auth-root-authentication-method=normal",
            *self._user,
        ]
        made = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert made.returncode == 0, made.stdout + made.stderr
        self.start()
        with pymysql.connect(host="127.0.0.1", port=self.port, user="root") as db, db.cursor() as cursor:
            cursor.execute("CREATE USER stormline@'127.0.0.1'")
            cursor.execute("GRANT ALL ON *.* TO stormline@'127.0.0.1' WITH GRANT OPTION")

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        command = [
            self._server,
            "--no-defaults",
            f"--datadir={self._folder / 'data'}",
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
            "--innodb-flush-log-at-trx-commit=0",  # processes die here, the machine does not
            "--innodb-buffer-pool-size=32M",
            *self._user,
        ]
        self._process = start(command, self._log, {})
        assert wait_until(self.answers, START_SECS), f"MariaDB does not answer: {self._log.read_text()[-2000:]}"

    def answers(self) -> bool:
        """Return whether the server takes connections."""
        try:
            pymysql.connect(host="127.0.0.1", port=self.port, user="root", connect_timeout=2).close()
        except pymysql.OperationalError:
            return False
        return True

    def url(self, database: str) -> str:
        """Return where a database is."""
        return f"mysql://stormline@127.0.0.1:{self.port}/{database}"

    def stop(self) -> None:
        """End the server for good, and remove its data."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        shutil.rmtree(self._folder, ignore_errors=True)
