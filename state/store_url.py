"""store_at: a store by one text, as a command line or a setting gives it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stormline.state.errors import InvalidStore
from stormline.state.memory import MemoryStore
from stormline.state.mysql import MySQLStore
from stormline.state.postgresql import PostgreSQLStore
from stormline.state.redis import RedisStore
from stormline.state.sqlite import SQLiteStore
from stormline.state.store import Store
from stormline.topology.errors import did_you_mean

FORMS = "sqlite:PATH, postgresql://…, postgresql:DSN, mysql://…, mariadb://…, redis://…, rediss://… or memory:NAME"


def _postgresql(url: str, password: str) -> Store:
    rest = url.partition(":")[2]
    return PostgreSQLStore(url if rest.startswith("//") else rest, password)


_BY_SCHEME: Mapping[str, Callable[[str, str], Store]] = {
    "postgresql": _postgresql,
    "postgres": _postgresql,
    "mysql": MySQLStore,
    "mariadb": MySQLStore,
    "redis": RedisStore,
    "rediss": RedisStore,
}
_WITHOUT_PASSWORD: Mapping[str, Callable[[str], Store]] = {"sqlite": SQLiteStore, "memory": MemoryStore}


def store_at(url: str, password: str = "") -> Store:
    """Return the store that a text names, so that a setting chooses the database; nothing is opened.

    Args:
        url (str): `sqlite:PATH`, `postgresql://…`, `postgresql:DSN` (also a reference: `postgresql:env:NAME`),
            `mysql://…`, `mariadb://…`, `redis://…`, `rediss://…` or `memory:NAME`; without a password.
        password (str): A reference to the password, `env:NAME` or `file:PATH`; empty: there is none.

    Raises:
        InvalidStore: It names none, or holds a password.
    """
    scheme, colon, rest = url.partition(":") if isinstance(url, str) else ("", "", "")
    known = [*_WITHOUT_PASSWORD, *_BY_SCHEME]
    if not colon or scheme not in known:
        got = f"begins with {scheme!r}" if colon else "has no scheme (it is not shown: it may hold a password)"
        raise InvalidStore(f"the text that names a store {got}, expected {FORMS}{did_you_mean(scheme, known)}")
    if scheme in _BY_SCHEME:
        return _BY_SCHEME[scheme](url, password)
    if password:
        raise InvalidStore(f"a {scheme} store is given a password, and has none; leave it out")
    if not rest:
        raise InvalidStore(f"a store is named by {url!r}, expected {scheme}:NAME, as sqlite:counts.sqlite")
    return _WITHOUT_PASSWORD[scheme](rest)
