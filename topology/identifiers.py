"""Names that reach a path, a znode, a log or a drawing: which ones are taken, and why not the others."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

NAME_CHARS_MAX = 128
"""Of a part of a znode's path, and of any other name."""

_PART = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9_.-]{{0,{NAME_CHARS_MAX - 1}}}")
_HOST = re.compile(r"[A-Za-z0-9_.:%\[\]-]{1,255}")
_SCRIPTS = frozenset({"LATIN", "CYRILLIC", "GREEK"})

RESERVED_ROOT = "zookeeper"
"""ZooKeeper keeps its quotas and its configuration there."""


def is_part(part: Any) -> bool:
    """Return whether a text can be one part of a path, of znodes and files alike: neither '..' nor hidden."""
    return isinstance(part, str) and _PART.fullmatch(part) is not None


def is_znode_path(path: str) -> bool:
    """Return whether a text is an absolute path of znodes that are not ZooKeeper's own."""
    parts = path[1:].split("/")
    return path[:1] == "/" and all(map(is_part, parts)) and parts[0] != RESERVED_ROOT


def is_host(host: Any) -> bool:
    """Return whether a text can be a host with or without a port: nothing that would begin a path or another host."""
    return isinstance(host, str) and _HOST.fullmatch(host) is not None


def is_dotted(name: Any) -> bool:
    """Return whether a text can name what is in a module: 'package.module.Class'."""
    parts = name.split(".") if isinstance(name, str) else []
    return len(parts) > 1 and all(map(str.isidentifier, parts))


def problem_of_name(name: str) -> str | None:
    """Return why nobody could tell a name from another by looking at it, or None.

    Component and stream ids are printed, logged and drawn, and may be in any language.
    """
    if len(name) > NAME_CHARS_MAX:
        return f"has {len(name)} characters, at most {NAME_CHARS_MAX} are taken"
    if name != name.strip() or not name.isprintable():
        return "holds white space at its ends, or control or invisible characters"
    if not unicodedata.is_normalized("NFKC", name):
        return f"has another form of characters that look the same; expected {unicodedata.normalize('NFKC', name)!r}"
    scripts = {unicodedata.name(character, "").partition(" ")[0] for character in name if character.isalpha()}
    mixed = sorted(_SCRIPTS & scripts)
    if len(mixed) > 1:
        return f"mixes {' and '.join(mixed)} letters, which look alike"
    return None
