"""Where a server is, as a URL without a password, and the reference that leads to the password."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from stormline.state.errors import InvalidStore
from stormline.topology.secrets import is_reference, resolve_secret


def check_server(kind: str, url: Any, password: Any, schemes: tuple[str, ...], example: str, *, database: bool) -> None:
    """Check what a store is declared with.

    Args:
        kind: what messages call the store.
        schemes: what its URL may begin with.
        example: a URL as it should be.
        database: whether the URL has to name a user and a database.

    Raises:
        InvalidStore: `url` is none, or holds a password; or `password` is no reference. Neither is shown.
    """
    try:
        parts = urlsplit(url)
        right = parts.scheme in schemes and bool(parts.hostname) and parts.password is None and parts.port != 0
        right = right and (not database or (bool(parts.username) and bool(parts.path[1:])))
    except (ValueError, AttributeError, TypeError):
        right = False
    if not right or (password and not is_reference(password)):
        raise InvalidStore(
            f"a {kind} store is given a URL or a password that is not shown here, expected {example} without a "
            "password, and password='env:NAME' or 'file:PATH'"
        )


def password_of(store: object, reference: str) -> str | None:
    """Return the password that a reference leads to, now; None where there is none.

    Raises:
        SecretMissing: There is nothing where the reference leads.
    """
    return resolve_secret(reference, f"the password of {store}") if reference else None
