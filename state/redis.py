"""RedisStore: a Redis server (pip install 'stormline[redis]')."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from stormline.state.errors import InvalidStore
from stormline.state.store import Store
from stormline.topology.errors import MissingExtra
from stormline.topology.secrets import is_reference, resolve_secret

if TYPE_CHECKING:
    from stormline.state.redis_connection import RedisConnection


@dataclass(frozen=True)
class RedisStore(Store):
    """A Redis database: one hash a map, one MULTI a transaction. What it loses after a crash stops the topology.

    A transaction waits for nobody: where two drivers store at once, one of them is replayed. Let the server have
    `appendonly yes` and `appendfsync always`, or what it acknowledged may be gone after a power cut. `transaction`
    gives a pipeline: what is put into it is done with the commit. Redis undoes nothing: where a command of yours fails
    there, the topology stops, and all else is stored.

    Args:
        url (str): Where it is, `redis://user@host:port/0` or `rediss://…`, without a password.
        password (str): A reference to the password, `env:NAME` or `file:PATH`, read where the connection is made;
            empty: there is none.
        timeout_secs (float): How many seconds to wait for a connection or an answer.

    Raises:
        InvalidStore: `url` is none, or a password is given that is no reference.
    """

    url: str
    password: str = ""
    timeout_secs: float = 10.0

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            right = parts.scheme in ("redis", "rediss") and bool(parts.hostname) and parts.password is None
            right = right and parts.port != 0
        except (ValueError, AttributeError, TypeError):
            right = False
        if not right or (self.password and not is_reference(self.password)):
            raise InvalidStore(
                "a Redis store is given a URL or a password that is not shown here, expected redis://host:port/0 "
                "without a password, and password='env:NAME' or 'file:PATH'"
            )

    def __str__(self) -> str:
        return str(self.url)

    def connect(self, reads: bool = False) -> RedisConnection:
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
            from stormline.state.redis_connection import RedisConnection
        except ImportError as error:
            raise MissingExtra.of("redis", str(self), "redis") from error
        password = resolve_secret(self.password, f"the password of {self}") if self.password else None
        return RedisConnection(str(self.url), password, self.timeout_secs, str(self))
