"""The fence: one row of the database for each topology, which says what was stored last, and by whom.

It is locked when a commit begins to use the store, compared, and raised in the same transaction of the database. So
whatever a driver believes: nothing is stored twice, nothing on top of a gap, nothing by a driver that was taken over.
"""

from __future__ import annotations

from typing import NamedTuple

from stormline.state.errors import StoreMismatch
from stormline.topology.commit_participants import CommitToken


class Fence(NamedTuple):
    """What was stored last in one scope of a topology."""

    epoch: int
    txid: int
    attempt: int
    commit_id: int

    @classmethod
    def of(cls, token: CommitToken) -> Fence:
        """Return what a commit leaves behind."""
        return cls(token.epoch, token.attempt.transaction_id, token.attempt.attempt_id, token.commit_id)


def is_stored(token: CommitToken, fence: Fence | None, txid_max: int, store: str) -> bool:
    """Return whether the store holds this transaction already, so that all it changes must be left alone.

    Args:
        fence: what is stored in the scope of `token`; None where nothing is.
        txid_max: the last transaction of any scope of the topology, 0 where nothing is stored: with another
            parallelism, or another placement of commits, a scope begins anew.

    Raises:
        StoreMismatch: the store holds another history, an earlier copy of this one, or what another driver stored.
    """
    who = f"{store} holds transaction {fence.txid if fence else txid_max} of topology {token.topology!r}"
    this = f"this is transaction {token.txid}"
    if fence is None or fence == Fence(0, 0, 0, 0):
        if txid_max >= token.txid - 1:
            return False
        raise StoreMismatch(_behind(f"{who} (0: nothing)", token))
    by = (fence.epoch, fence.attempt if fence.txid == token.txid else 0)
    if by > (token.epoch, token.attempt.attempt_id):
        raise StoreMismatch(
            f"{who}, stored by epoch {fence.epoch}, attempt {fence.attempt}, and {this} of epoch {token.epoch}, "
            f"attempt {token.attempt.attempt_id}, which is older: another driver has taken over, or the topology's "
            "state was removed; to count from the start, remove the store's tables, or use another topology id"
        )
    if fence.txid > token.txid:
        raise StoreMismatch(
            f"{who}, and {this}: the topology's state was removed or set back to an older copy; bring back the newer "
            "one, or, to count from the start, remove the store's tables"
        )
    if fence.txid == token.txid:
        if fence.commit_id != token.commit_id:
            raise StoreMismatch(
                f"{who} under another commit id: the topology's state was set back to an older copy, from which "
                f"another transaction {token.txid} has come; bring back the newer one, or remove the store's tables"
            )
        return True
    if fence.txid < token.txid - 1:
        raise StoreMismatch(_behind(who, token))
    return False


def _behind(who: str, token: CommitToken) -> str:
    return (
        f"{who}, and the next one to commit is {token.txid}: the database was removed, or is an older copy, or no bolt "
        f"opened the store in between (open it in each finish_batch(), also where there is nothing to store); bring "
        "back the newer database, or, to count from the start, remove the topology's state too; to begin with this "
        f"store here, call store.adopt({token.topology!r}, {token.txid - 1})"
    )
