"""MySQLStore: a database on a MariaDB or MySQL server (pip install 'stormline[mysql]')."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from stormline.state.errors import InvalidStore
from stormline.state.store import Store
from stormline.topology.errors import MissingExtra
from stormline.topology.secrets import is_reference, resolve_secret

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
    password: str = ""
    timeout_secs: float = 10.0

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            named = parts.scheme in ("mysql", "mariadb") and parts.hostname and parts.username and parts.path[1:]
            right = bool(named) and parts.password is None and parts.port != 0
        except (ValueError, AttributeError, TypeError):
            right = False
        if not right or (self.password and not is_reference(self.password)):
            raise InvalidStore(
                "a MySQL store is given a URL or a password that is not shown here, expected "
                "mysql://user@host:port/database without a password, and password='env:NAME' or 'file:PATH'"
            )

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
        parts = urlsplit(self.url)
        password = resolve_secret(self.password, f"the password of {self}") if self.password else ""
        place = {
            "host": parts.hostname,
            "port": parts.port or 3306,
            "user": unquote(parts.username or ""),
            "database": unquote(parts.path[1:]),
        }
        return MySQLConnection(place, password, self.timeout_secs, str(self), reads)
