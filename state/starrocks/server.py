"""StarRocks: where its front ends are, and who loads into which database."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stormline.state.server_url import password_of
from stormline.state.starrocks.errors import InvalidStarRocks
from stormline.topology.secrets import is_reference

if TYPE_CHECKING:
    from stormline.state.starrocks.client import StreamLoadClient

PORT = 8030
_URL = re.compile(r"starrocks://(?P<user>[^@:/]+)@(?P<hosts>[^@/]+)/(?P<database>\w+)/?")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[-\w.]+)(?::(\d{1,5}))?", re.ASCII)


@dataclass(frozen=True)
class StarRocks:
    """A database of a StarRocks cluster, as plain data: it can be declared in a module, printed, pickled.

    Args:
        url (str): `starrocks://user@fe1:8030,fe2:8030/database`: the HTTP ports of front ends, of which any will do;
            8030 where none is given. The user needs INSERT on the tables.
        password (str): A reference to the password, `env:NAME` or `file:PATH`, read where a connection is made; empty:
            there is none.
        timeout_secs (float): How many seconds to wait for an answer.
        load_timeout_secs (int): Seconds from the begin of a transaction until it is prepared, after which StarRocks
            aborts it: more than a batch takes.
        idle_timeout_secs (int): Seconds without a load, after which StarRocks rolls back what is not prepared: what a
            killed process left is gone after that; 0: `load_timeout_secs` alone counts.
        prepared_timeout_secs (int): Seconds for which StarRocks keeps a prepared transaction (from 3.5.4 on; before,
            its configuration says so): more than the longest outage of the topology, or rows are lost.

    Raises:
        InvalidStarRocks: The URL is none, or holds a password; or a number is out of range.
    """

    url: str
    password: str = field(default="", repr=False)
    timeout_secs: float = 30.0
    load_timeout_secs: int = 600
    idle_timeout_secs: int = 0
    prepared_timeout_secs: int = 86_400

    def __post_init__(self) -> None:
        found = _URL.fullmatch(self.url) if isinstance(self.url, str) else None
        if found is None or not all(map(_HOST.fullmatch, found["hosts"].split(","))):
            raise InvalidStarRocks(
                "StarRocks is given a URL that is not shown here, expected starrocks://user@host:8030/database without "
                "a password, several front ends as host1:8030,host2:8030"
            )
        if self.password and not is_reference(self.password):
            raise InvalidStarRocks(
                "StarRocks is given a password that is not shown here, expected a reference to it: env:NAME or "
                "file:PATH"
            )
        secs: Any = self.timeout_secs
        if isinstance(secs, bool) or not isinstance(secs, (int, float)) or not 0 < secs < 1e6:
            raise InvalidStarRocks(f"timeout_secs is {secs!r}, expected a number of seconds, more than 0")
        for name, least in (("load_timeout_secs", 1), ("idle_timeout_secs", 0), ("prepared_timeout_secs", 1)):
            number = getattr(self, name)
            if type(number) is not int or not least <= number < 1 << 31:
                raise InvalidStarRocks(f"{name} is {number!r}, expected a whole number of seconds, at least {least}")

    def __str__(self) -> str:
        return self.url

    @property
    def _parts(self) -> re.Match[str]:
        found = _URL.fullmatch(self.url)
        assert found is not None, "checked when it was made"
        return found

    @property
    def user(self) -> str:
        """The user's name."""
        return self._parts["user"]

    @property
    def database(self) -> str:
        """The database's name."""
        return self._parts["database"]

    @property
    def front_ends(self) -> list[tuple[str, int]]:
        """Host and port of each front end."""
        found = [_HOST.fullmatch(host) for host in self._parts["hosts"].split(",")]
        return [(one[1].strip("[]"), int(one[2] or PORT)) for one in found if one is not None]

    def open_client(self) -> StreamLoadClient:
        """Return a client; the password is read now.

        Raises:
            SecretMissing: There is nothing where its reference leads.
        """
        from stormline.state.starrocks.client import StreamLoadClient  # it brings HTTP, and so TLS

        return StreamLoadClient(
            str(self),
            self.front_ends,
            self.database,
            self.user,
            password_of(self, self.password) or "",
            timeout_secs=self.timeout_secs,
            load_timeout_secs=self.load_timeout_secs,
            idle_timeout_secs=self.idle_timeout_secs,
            prepared_timeout_secs=self.prepared_timeout_secs,
        )
