"""Which transactions of two-phase sinks were left behind, and may be aborted: rules R5 and R8. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stormline.topology.transaction_label import TransactionLabel


@dataclass(frozen=True, slots=True)
class Kept:
    """The labels of a batch that is fixed, of the `attempt` that fixed it in this process; 0: one before it did."""

    attempt: int
    labels: frozenset[str]


@dataclass(frozen=True, slots=True)
class SinkKnowledge:
    """What a driver of `epoch` knew before it asked a resource for its list; what it learns later changes no answer.

    `committed`: the last transaction that is recorded. `newest`: by txid the newest attempt that was begun here.
    `kept`: by txid what is stored of batches that are fixed.
    """

    epoch: int
    committed: int
    newest: Mapping[int, int]
    kept: Mapping[int, Kept]

    def left_behind(self, label: TransactionLabel) -> bool:
        """Return whether nobody will ever commit a transaction: neither this driver, nor one after it.

        Not where a newer driver has begun it (R8), a record names it, or an attempt that may count is at work on it.
        """
        kept = self.kept.get(label.txid)
        if label.epoch > self.epoch or (kept is not None and label.text in kept.labels):
            return False
        if label.epoch < self.epoch or label.txid <= self.committed:
            return True
        if label.attempt < self.newest.get(label.txid, 0):
            return True
        return kept is not None and kept.attempt == label.attempt  # another execution of it is what counts (R1)
