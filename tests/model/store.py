"""What committers write to where transactions become durable together: one atomic step, by the fence of the stores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from stormline.state.errors import StoreMismatch
from stormline.state.fence import Fence, stored_by
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.commit_participants import WHOLE_TOPOLOGY, CommitToken
from tests.model.database import Token


class Part(NamedTuple):
    """What one transaction brings to a step."""

    token: Token
    commit_id: int
    offsets: tuple[int, ...]

    @property
    def shown(self) -> CommitToken:
        """What the fence is shown."""
        attempt = TransactionAttempt(self.token.txid, self.token.attempt)
        return CommitToken("model", WHOLE_TOPOLOGY, self.token.epoch, attempt, self.commit_id)


@dataclass
class GroupStore:
    """All that was applied, and the fence."""

    fence: Fence | None = None
    applied: list[int] = field(default_factory=list)

    def holds(self, part: Part) -> bool:
        """Return whether a transaction is stored; raises `StoreMismatch` where it must not be."""
        return stored_by(part.shown, self.fence, {}, "the store") is not None

    def lets_in(self, part: Part) -> bool:
        """Return whether the fence takes a transaction for what it is: the next one, or one that is stored."""
        try:
            self.holds(part)
        except StoreMismatch:
            return False
        return True

    def reaches(self, part: Part) -> bool:
        """Return whether the fence is at a transaction, or past it."""
        return self.fence is not None and part.token.txid <= self.fence.txid

    def apply(self, parts: Sequence[Part]) -> bool:
        """Apply a group once, all of it or nothing; return whether the fence let it in."""
        try:
            stored = stored_by(parts[0].shown, self.fence, {}, "the store")
        except StoreMismatch:
            return False
        if stored is not None:
            assert self.fence is not None
            self.fence = self.fence.raised_by(parts[-1].shown)
            return True
        self.applied += [offset for part in parts for offset in part.offsets]
        self.fence = Fence.of(parts[-1].shown, tuple(part.commit_id for part in parts[:-1]))
        return True
