"""StepOracle: what is right of a store, in which several transactions may become durable in one step.

Laws by number, as docs/laws.md has them: law 1 (order), law 2 (sameness), law 5 (complete input), law 6 (fencing),
law 7 (one execution).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from stormline.state.fence import Fence
from tests.simulation.databases import Row

if TYPE_CHECKING:
    from tests.simulation.oracle import Oracle

TABLES = ("keyed", "total", "ledger")
FENCE = ("simulated", "")

Fences = Mapping[tuple[str, str], Fence]
Content = Mapping[str, list[Row]]


class StepOracle:
    """Sees each step of the store: from which transaction to which, and what rows came with it.

    Args:
        group_max: so many transactions may share a step; None: no bolt stores here.
    """

    def __init__(self, oracle: Oracle, group_max: int | None) -> None:
        self._oracle = oracle
        self.group_max = group_max
        self.durable = 0
        self.grouped = 0
        self._ids: dict[int, int] = {}

    def done(self, fences_before: Fences, fences: Fences, before: Content, after: Content) -> None:
        """See one transaction of the database become durable."""
        oracle = self._oracle
        fence, was = fences[FENCE], fences_before.get(FENCE, Fence(0, 0, 0, 0))
        oracle.note(f"store: transactions {fence.first} to {fence.txid}, epoch {fence.epoch}; it held {was.txid}")
        if fence.epoch < was.epoch:
            oracle.broken(f"law 6: epoch {fence.epoch} stores after epoch {was.epoch}")
        added = {table: Counter(after.get(table, ())) - Counter(before.get(table, ())) for table in TABLES}
        gone = {table: Counter(before.get(table, ())) - Counter(after.get(table, ())) for table in TABLES}
        if any(rows for rows in gone.values()):
            oracle.broken(f"exactly once: a step of the store removes {gone}")
        if fence.txid == was.txid:
            if any(rows for rows in added.values()) or fence.earlier != was.earlier:
                oracle.broken(f"exactly once: {fence} was stored, and is stored again with {added}")
            return
        first = was.txid + 1
        if fence.first != first:
            oracle.broken(f"law 1: a step stores {fence.first} to {fence.txid}, {was.txid} was stored")
        if first > oracle.committed + 1:
            oracle.broken(f"law 1: a step stores {first} to {fence.txid}, {oracle.committed} is recorded as committed")
        if len(fence.earlier) + 1 > (self.group_max or 0):
            oracle.broken(f"law 1: a step stores {first} to {fence.txid}, at most {self.group_max} may share one")
        expected: list[tuple[int, int]] = []
        for txid, commit_id in zip(range(first, fence.txid + 1), (*fence.earlier, fence.commit_id), strict=False):
            batch = oracle.freeze(txid, "a step of the store")
            if batch is None:
                return
            if batch["commit_id"] != commit_id or self._ids.setdefault(txid, commit_id) != commit_id:
                oracle.broken(f"law 2: {txid} is stored under another id than with its batch")
            expected += oracle.expected(batch)
        for table, rows in added.items():
            if sorted(row[:2] for row in rows.elements()) != sorted(expected):
                oracle.broken(f"law 5: {first} to {fence.txid} are stored with {rows} in {table}, not {expected}")
        if len({tuple(sorted(rows.elements())) for rows in added.values()}) > 1:
            oracle.broken(f"law 7: {first} to {fence.txid} are stored with rows of several executions: {added}")
        self.durable = fence.txid
        self.grouped += len(fence.earlier)

    def check_record(self, txid: int) -> bool:
        """See that what is recorded is durable; return whether no bolt stores anywhere else."""
        if self.group_max is None:
            return False
        if txid > self.durable:
            self._oracle.broken(f"law 1: {txid} is recorded, and {self.durable} is stored")
        return True

    def set_back(self, committed: int) -> None:
        """Record that the topology's state is an earlier one."""
        self._ids = {txid: commit_id for txid, commit_id in self._ids.items() if txid <= committed}

    def may_begin(self, txid: int, committed: int) -> bool:
        """Return whether a commit phase may begin by law 1's exception: what it does is there when its group is."""
        return self.group_max is not None and txid <= committed + self.group_max

    def check_content(self, content: Content, expected: list[tuple[int, int]]) -> None:
        """See that each offset is in each table once, at the end."""
        for table in TABLES:
            rows = sorted(row[:2] for row in content.get(table, ()))
            if rows != expected:
                self._oracle.broken(f"exactly once: {table} of the store holds {rows}, expected {expected}")
