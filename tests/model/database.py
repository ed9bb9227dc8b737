"""What user code writes to: a database of two keys, each fenced by the token."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

KEYS = ("left", "right")


class Token(NamedTuple):
    """Who acts: what user code is given to be fenced by. Tokens are compared as they stand."""

    epoch: int
    txid: int
    attempt: int


NOBODY = Token(0, 0, 0)


@dataclass
class Database:
    """Two keys of value and txid, each fenced by the token, each written in a transaction of its own."""

    applied: dict[str, list[int]] = field(default_factory=lambda: {key: [] for key in KEYS})
    txid: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KEYS, 0))
    token: dict[str, Token] = field(default_factory=lambda: dict.fromkeys(KEYS, NOBODY))

    def apply(self, key: str, token: Token, offsets: list[int]) -> bool:
        """Apply a batch once; return whether the token let it in."""
        if token < self.token[key]:
            return False
        self.token[key] = token
        if token.txid > self.txid[key]:
            self.txid[key] = token.txid
            self.applied[key] += offsets
        return True
