"""Secrets by reference: a setting says where a secret is kept, and only whoever needs it reads it, where that runs.

A configuration is pickled to executors, printed, compared and put on command lines; a reference may be seen by all.
"""

from __future__ import annotations

import json
import logging
import os
import re
import stat
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, quote_plus

from stormline.topology.errors import InvalidConfig, SecretMissing

SECRET_BYTES_MAX = 1 << 16
HIDDEN = "*****"
SHOWN_BELOW = 6
"""A shorter secret is not looked for in texts: it would be found in words that have nothing to do with it."""

_REFERENCE = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]*)|file:([^\0]+)")
# What Spark redacts in its own pages, and a few names more.
_SECRET_NAME = re.compile(
    r"(?i)secret|passw(or)?d|passphrase|token|(access|account|private)[._-]?key|[._]sas[._]|credential"
)
_PLACE_NAME = re.compile(r"(?i)[._-](file|path|location|enabled?)$|^spark\.kubernetes\.\w+\.secrets\.|secretKeyRef")

_known: tuple[str, ...] = ()
_lock = threading.Lock()


def is_reference(value: object) -> bool:
    """Return whether a value says where a secret is kept: `env:NAME` or `file:PATH`."""
    return isinstance(value, str) and _REFERENCE.fullmatch(value) is not None


def names_a_secret(key: object) -> bool:
    """Return whether a key is called as secrets are: its value is never printed."""
    return isinstance(key, str) and bool(_SECRET_NAME.search(key)) and not _PLACE_NAME.search(key)


def literal_secrets(config: Mapping[str, Any]) -> list[str]:
    """Return the keys that are called as secrets are, and hold text that refers to none."""
    return [
        key
        for key, value in config.items()
        if names_a_secret(key) and isinstance(value, (str, bytes)) and value and not is_reference(value)
    ]


def resolve_secret(reference: str, what: str = "a secret") -> str:
    """Return the secret that `env:NAME` or `file:PATH` refers to, read now and in this process.

    Call it in `prepare`, where the secret is used: the configuration keeps the reference. A file's last line feed is
    no part of the secret. From now on this process hides the secret in tracebacks and in Stormline's log.

    Args:
        reference (str): `env:NAME`, an environment variable of this process; or `file:PATH`, a UTF-8 file of at most
            65,536 bytes.
        what (str): who needs it, for messages.

    Raises:
        InvalidConfig: `reference` is none; it is not shown, for it may be the secret itself.
        SecretMissing: there is nothing where it leads, or nothing that can be read.
    """
    found = _REFERENCE.fullmatch(reference) if isinstance(reference, str) else None
    if found is None:
        raise InvalidConfig(
            f"{what} is given as a {type(reference).__name__} that is not shown here, expected a reference to it: "
            "env:NAME or file:PATH"
        )
    secret = _from_environment(found[1], what) if found[1] else _from_file(found[2], what)
    hide(secret)
    return secret


def _from_environment(name: str, what: str) -> str:
    secret = os.environ.get(name, "")
    if not secret:
        raise SecretMissing(
            f"{what} refers to env:{name}, which is not set here; set the environment variable {name} for the process "
            "that needs it (of an executor: spark.executorEnv), or use file:PATH"
        )
    return secret


def _from_file(path: str, what: str) -> str:
    try:
        # Not a FIFO that nobody writes to, nor a terminal.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
            data = file.read(SECRET_BYTES_MAX + 1) if regular else b""
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SecretMissing(
            f"{what} refers to file:{path}, which cannot be read here ({reason}); put the secret there, readable by "
            "this user only, on every machine that needs it"
        ) from None
    if not regular or len(data) > SECRET_BYTES_MAX:
        problem = f"more than {SECRET_BYTES_MAX} bytes" if regular else "not a regular file"
        raise SecretMissing(f"{what} refers to file:{path}, which is {problem}; expected a file with the secret alone")
    try:
        secret = data.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise SecretMissing(f"{what} refers to file:{path}, which is not UTF-8; expected a text") from None
    if not secret:
        raise SecretMissing(f"{what} refers to file:{path}, which is empty; write the secret into it")
    return secret


def hide(secret: str) -> None:
    """Hide a text in this process's tracebacks and log from now on, also as repr, JSON and URLs write it."""
    global _known
    with _lock:
        logging.getLogger("stormline").addFilter(HIDE_SECRETS)
        _known = tuple(sorted({*_known, *_forms(secret)}, key=len, reverse=True))


def _forms(secret: str) -> set[str]:
    """Return how a secret may stand in a text; of one with several lines each by itself, too."""
    forms = set()
    for text in {secret, *secret.splitlines()}:
        data = text.encode("utf-8", "surrogateescape")
        # Which quotes repr escapes depends on the text around; after one of each kind it is these.
        escaped = {repr(f'"{text}')[2:-1], ascii(f'"{text}')[2:-1], repr(b'"' + data)[3:-1]}
        forms |= {text, *escaped, *(form.replace("\\'", "'") for form in escaped)}
        forms |= {json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
        forms |= {quote(data), quote(data, safe=""), quote_plus(data)}
    return {form for form in forms if len(form) >= SHOWN_BELOW}


def without_secrets(text: str) -> str:
    """Return `text` with every secret that this process has resolved hidden, the longest first."""
    for form in _known:
        text = text.replace(form, HIDDEN)
    return text


class _HideSecrets(logging.Filter):
    """Hides secrets in what a logger is told, tracebacks included; not in what its children are."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass, with its secrets hidden."""
        record.msg, record.args = without_secrets(record.getMessage()), None
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = without_secrets(record.exc_text)
        return True


HIDE_SECRETS = _HideSecrets()
"""Goes into every logger of ours; added again it is there once."""
