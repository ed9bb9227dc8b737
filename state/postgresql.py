"""PostgreSQLStore: a database on a PostgreSQL server (pip install 'stormline[postgresql]')."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stormline.state.errors import InvalidStore
from stormline.state.server_url import password_of
from stormline.state.store import Store
from stormline.topology.errors import MissingExtra
from stormline.topology.secrets import is_reference, resolve_secret

if TYPE_CHECKING:
    from stormline.state.postgresql_connection import PostgreSQLConnection

_PASSWORD = re.compile(r"(?i)\bpassword\s*=|^postgres(?:ql)?://[^/@]*:[^/@]*@")


@dataclass(frozen=True)
class PostgreSQLStore(Store):
    """A PostgreSQL database, one connection for each transaction that is under way.

    Where the server is away, or somebody else holds a lock too long, the batch is replayed until it is there.

    Args:
        dsn (str): Where it is, as libpq has it: `host=db dbname=counts user=stormline`, or a URL; without a password.
            A reference (`env:NAME`, `file:PATH`) leads to one that may have a password.
        password (str): A reference to the password, `env:NAME` or `file:PATH`, read where the connection is made;
            empty: there is none, or libpq knows it.
        timeout_secs (float): How many seconds to wait for a connection, a lock or a statement.

    Raises:
        InvalidStore: `dsn` or `password` hold a password, not a reference.
    """

    dsn: str
    password: str = field(default="", compare=False)
    timeout_secs: float = field(default=10.0, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.dsn, str) or (_PASSWORD.search(self.dsn) and not is_reference(self.dsn)):
            raise InvalidStore(
                "a PostgreSQL store is given a DSN that is no text, or that holds a password, which is not shown here; "
                "leave it out, and give password='env:NAME' or 'file:PATH'"
            )
        if self.password and not is_reference(self.password):
            raise InvalidStore(
                "a PostgreSQL store is given a password that is not shown here, expected a reference to it: env:NAME "
                "or file:PATH"
            )

    def __str__(self) -> str:
        return f"postgresql:{self.dsn}"

    def connect(self, reads: bool = False) -> PostgreSQLConnection:
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
            from stormline.state.postgresql_connection import PostgreSQLConnection
        except ImportError as error:
            raise MissingExtra.of("postgresql", str(self), "psycopg") from error
        return PostgreSQLConnection(*self.connection_arguments(), reads)

    def connection_arguments(self) -> tuple[str, str | None, float, str]:
        """Return what connections are made with: DSN, password, time-out, and what messages call the store.

        Raises:
            SecretMissing: There is nothing where a reference leads.
        """
        dsn = resolve_secret(self.dsn, f"the DSN of {self}") if is_reference(self.dsn) else self.dsn
        return dsn, password_of(self, self.password), self.timeout_secs, str(self)
