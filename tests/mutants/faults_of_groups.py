"""Faults of groups: of transactions that become durable in one step."""

from __future__ import annotations

from tests.mutants.mutant import Killer, Mutant

QUEUE = "runtime/coordination/commit_queue.py"
GROUP = "runtime/commit/commit_group.py"
COMMITTER = "runtime/coordination/committer.py"
BATCHES = "runtime/coordination/batch_store.py"
FENCE = "state/fence.py"
STORE = "state/store_transaction.py"
ROWS = "state/grouped_rows.py"

GROUPS = (
    Mutant(
        "group-recorded-before-its-step",
        "1 order",
        "A group is recorded as committed before what it stores is durable.",
        COMMITTER,
        "            failure = group.commit()\n",
        "            self._store.write([record_of(results[kept - 1].attempt)])\n            failure = group.commit()\n",
    ),
    Mutant(
        "group-with-a-gap",
        "1 order",
        "A group takes what waits, although a transaction between is missing.",
        QUEUE,
        "self.waiting.get(first + len(group))) is not None",
        "next((r for t, r in sorted(self.waiting.items()) if t > group[-1].attempt.transaction_id), None)) is not None",
        killer=Killer.MODEL,
    ),
    Mutant(
        "group-without-an-end",
        "1 order",
        "A group takes more than may share a step, so more than a restart takes as begun.",
        QUEUE,
        "while len(group) < size_max and",
        "while len(group) < size_max + 1 and",
        killer=Killer.MODEL,
    ),
    Mutant(
        "only-the-first-of-a-group-is-frozen",
        "2 sameness",
        "A driver that starts takes only the next transaction as begun, and not those that may have been its group.",
        BATCHES,
        "begun - self.found_committed >= batch.group_max:",
        "begun - self.found_committed >= 1:",
    ),
    Mutant(
        "size-of-a-group-is-not-stored",
        "2 sameness",
        "What fixes a batch does not say in how large a group it may commit.",
        "runtime/coordination/batch_definitions.py",
        "result.partitions, commit_id, self._group_max, handles",
        "result.partitions, commit_id, 1, handles",
    ),
    Mutant(
        "a-commit-forgets-what-began-behind-it",
        "2 sameness",
        "A commit by itself forgets that those behind it may have had an effect, in a group whose step got no answer.",
        QUEUE,
        "self.begun = max(self.begun, self.running.last.transaction_id)",
        "self.begun = self.running.last.transaction_id",
        killer=Killer.MODEL,
    ),
    Mutant(
        "failed-one-becomes-durable",
        "3 attempts",
        "Of a group the commit phase that failed becomes durable with those before it.",
        QUEUE,
        "kept = 0 if running.stage is Stage.REVOKED else held",
        "kept = 0 if running.stage is Stage.REVOKED else held + failed",
        killer=Killer.MODEL,
    ),
    Mutant(
        "fence-forgets-its-group",
        "1 order",
        "The fence holds only the last transaction of a step: those before it are not found when the record is lost.",
        STORE,
        "left = Fence.of(self.token, tuple(token.commit_id for token in held[:-1]))",
        "left = Fence.of(self.token)",
    ),
    Mutant(
        "replay-lowers-the-fence",
        "exactly once",
        "A replay of the first of a group that is stored leaves the fence at it: the rest is stored again.",
        STORE,
        "left = self._fence.raised_by(self.token)",
        "left = Fence.of(self.token)",
        seed=510,
    ),
    Mutant(
        "stored-and-new-in-one-group",
        "exactly once",
        "What the store holds and what it does not share a step, as if it held all of it.",
        STORE,
        "        if token.txid > self._fence.txid:\n            return None\n",
        "        if token.txid > self._fence.txid:\n"
        "            return StoreTransaction(self._shared, token, self._fence)\n",
    ),
    Mutant(
        "later-ones-see-the-database-only",
        "exactly once",
        "A transaction of a group does not see what those before it have stored.",
        ROWS,
        "now[key] if key in now else before[key] for key in keys if key in now or key in before}",
        "before[key] for key in keys if key in before}",
    ),
    Mutant(
        "what-failed-is-held",
        "10 stop or replay",
        "FailedException of a committer in a group does not keep what it has stored from becoming durable.",
        GROUP,
        "            failure = phase.run_within(self._target, str(self._target), participant)\n",
        "            phase.run_within(self._target, str(self._target), participant)\n",
    ),
)
