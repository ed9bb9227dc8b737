"""The fence: one row of the database for each topology, which says what was stored last, and by whom.

It is locked when a commit begins to use the store, compared, and raised in the same transaction of the database. So
whatever a driver believes: nothing is stored twice, nothing on top of a gap, nothing by a driver that was taken over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from stormline.state.errors import StoreMismatch
from stormline.topology.commit_participants import WHOLE_TOPOLOGY, CommitToken

REMOVE = "remove what the store holds: a database's tables (`stormline state tables` names them), Kafka's ledger topic"
"""How to begin anew."""


class Fence(NamedTuple):
    """What was stored last in one scope of a topology.

    `earlier`: the commit ids of the transactions right before `txid` that the same transaction of the database stored.
    """

    epoch: int
    txid: int
    attempt: int
    commit_id: int
    earlier: tuple[int, ...] = ()

    @classmethod
    def of(cls, token: CommitToken, earlier: tuple[int, ...] = ()) -> Fence:
        """Return what a commit leaves behind."""
        return cls(token.epoch, token.attempt.transaction_id, token.attempt.attempt_id, token.commit_id, earlier)

    @property
    def first(self) -> int:
        """The first transaction that became durable together with the last one."""
        return self.txid - len(self.earlier)

    def raised_by(self, token: CommitToken) -> Fence:
        """Return what a replay of a transaction that is stored leaves behind: all stays stored, by whoever comes now.

        It never says less than was stored: the later transactions of a group are not replayed yet.
        """
        attempt = token.attempt.attempt_id if token.txid == self.txid else self.attempt
        return self._replace(epoch=token.epoch, attempt=attempt)


def is_behind(fence: Fence | None, token: CommitToken) -> bool:
    """Return whether a scope alone does not tell what comes next: it is new, or others have stored meanwhile."""
    return fence is None or fence.txid < token.txid - 1 or not fence.txid


def stored_by(token: CommitToken, fence: Fence | None, fences: Mapping[str, Fence], store: str) -> Fence | None:
    """Return the fence that holds this transaction already, so that all it changes must be left alone; None: none does.

    Args:
        fence: what is stored in the scope of `token`; None where nothing is.
        fences: by scope, all that is stored of the topology; needed where this scope `is_behind`: with another
            parallelism, or another placement of commits, a scope begins anew, or goes on after others.

    Raises:
        StoreMismatch: the store holds another history, an earlier copy of this one, or what another driver stored.
    """
    if fence is not None and not is_behind(fence, token):
        return _checked(token, fence, store)
    whole = fences.get(WHOLE_TOPOLOGY)
    if whole is not None and whole.first <= token.txid <= whole.txid:  # all tasks stored it together
        return _checked(token, whole, store)
    last = max(fences.values(), key=lambda one: (one.txid, one.epoch), default=fence or Fence(0, 0, 0, 0))
    if last.txid < token.txid - 1:
        nothing = "" if last.txid else " (0: nothing)"
        raise StoreMismatch(_behind(f"{_who(token, store, last.txid)}{nothing}", token))
    _checked(token, last, store)  # what others have stored of this transaction leaves this scope's share to be stored
    return None


def _who(token: CommitToken, store: str, txid: int) -> str:
    return f"{store} holds transaction {txid} of topology {token.topology!r}"


def _checked(token: CommitToken, fence: Fence, store: str) -> Fence | None:
    who, this = _who(token, store, fence.txid), f"this is transaction {token.txid}"
    by = (fence.epoch, fence.attempt if fence.txid == token.txid else 0)
    if by > (token.epoch, token.attempt.attempt_id):
        raise StoreMismatch(
            f"{who}, stored by epoch {fence.epoch}, attempt {fence.attempt}, and {this} of epoch {token.epoch}, "
            f"attempt {token.attempt.attempt_id}, which is older: another driver has taken over, or the topology's "
            f"state was removed; to count from the start, use another topology id, or {REMOVE}"
        )
    if fence.first <= token.txid <= fence.txid:
        if (*fence.earlier, fence.commit_id)[token.txid - fence.first] != token.commit_id:
            raise StoreMismatch(
                f"{_who(token, store, token.txid)} under another commit id: the topology's state was set back to an "
                f"older copy, from which another transaction {token.txid} has come; bring back the newer one, or "
                f"{REMOVE}"
            )
        return fence
    if fence.txid > token.txid:
        raise StoreMismatch(
            f"{who}, and {this}: the topology's state was removed or set back to an older copy; bring back the newer "
            f"one, or, to count from the start, {REMOVE}"
        )
    return None


def _behind(who: str, token: CommitToken) -> str:
    return (
        f"{who}, and the next one to commit is {token.txid}: the database was removed, or is an older copy, or no bolt "
        f"opened the store in between (open it in each finish_batch(), also where there is nothing to store); bring "
        "back the newer database, or, to count from the start, remove the topology's state too; to begin with this "
        f"store here, call store.adopt({token.topology!r}, {token.txid - 1})"
    )
