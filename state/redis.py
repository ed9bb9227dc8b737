"""RedisStore: a Redis server (pip install 'stormline[redis]')."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stormline.state.server_url import check_server, password_of
from stormline.state.store import Store
from stormline.topology.errors import MissingExtra

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
    password: str = field(default="", compare=False)
    timeout_secs: float = field(default=10.0, compare=False)

    def __post_init__(self) -> None:
        check_server("Redis", self.url, self.password, ("redis", "rediss"), "redis://host:port/0", database=False)

    def __str__(self) -> str:
        return str(self.url)

    def connect(self) -> RedisConnection:
        """Return a new connection.

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
        return RedisConnection(str(self.url), password_of(self, self.password), self.timeout_secs, str(self))
