"""MySQLStore: a database on a MariaDB or MySQL server (pip install 'stormline[mysql]')."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from stormline.state.server_url import check_server, password_of
from stormline.state.store import Store
from stormline.topology.errors import MissingExtra

if TYPE_CHECKING:
    from stormline.state.mysql_connection import MySQLConnection


@dataclass(frozen=True)
class MySQLStore(Store):
    """A MariaDB or MySQL database, one connection for each transaction that is under way.

    Where the server is away, or somebody else holds a lock too long, the batch is replayed until it is there. Let own
    SQL make no tables: MySQL commits at once where it does. Text of a key has at most 255 characters, bytes 1,020.

    Args:
        url (str): Where it is, `mysql://user@host:port/database`, without a password.
        password (str): A reference to the password, `env:NAME` or `file:PATH`, read where the connection is made;
            empty: there is none.
        timeout_secs (float): How many seconds to wait for a connection, a lock or a statement.

    Raises:
        InvalidStore: `url` is none, or a password is given that is no reference.
    """

    url: str
    password: str = field(default="", compare=False)
    timeout_secs: float = field(default=10.0, compare=False)

    def __post_init__(self) -> None:
        example = "mysql://user@host:port/database"
        check_server("MySQL", self.url, self.password, ("mysql", "mariadb"), example, database=True)

    def __str__(self) -> str:
        return str(self.url)

    def connect(self, reads: bool = False) -> MySQLConnection:
        """Return a new connection.

        Args:
            reads (bool): Whether it is only to read.

        Raises:
            MissingExtra: The driver is not installed.
            SecretMissing: There is no password where the reference leads.
            StoreUnavailable: The server is away.
            StoreFailed: It refuses the connection.
        """
        try:
            from stormline.state.mysql_connection import MySQLConnection
        except ImportError as error:
            raise MissingExtra.of("mysql", str(self), "pymysql") from error
        return MySQLConnection(*self.connection_arguments(), reads)

    def connection_arguments(self) -> tuple[Mapping[str, Any], str, float, str]:
        """Return what connections are made with: place, password, time-out, and what messages call the store.

        Raises:
            SecretMissing: There is no password where the reference leads.
        """
        parts = urlsplit(self.url)
        place = {
            "host": parts.hostname,
            "port": parts.port or 3306,
            "user": unquote(parts.username or ""),
            "database": unquote(parts.path[1:]),
        }
        return place, password_of(self, self.password) or "", self.timeout_secs, str(self)
