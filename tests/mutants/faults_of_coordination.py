"""Faults of who decides what is processed, replayed and committed: the coordinator and the loop."""

from __future__ import annotations

from tests.mutants.mutant import Killer, Mutant

COORDINATOR = "runtime/coordination/coordinator.py"
DEFINITIONS = "runtime/coordination/batch_definitions.py"
NEXT_WAVE = "runtime/coordination/next_wave.py"
RUNNER = "runtime/coordination/topology_runner.py"

COORDINATION = (
    Mutant(
        "attempt-ids-restart",
        "3 attempts",
        "Attempt ids begin at 1 again with each driver.",
        COORDINATOR,
        "(epoch - 1) * ATTEMPTS_PER_EPOCH",
        "0",
    ),
    Mutant(
        "attempt-id-kept-by-replay",
        "3 attempts",
        "A replay has the attempt id of the attempt that failed.",
        COORDINATOR,
        "TransactionAttempt(txid, active.attempt.attempt_id + 1)",
        "TransactionAttempt(txid, active.attempt.attempt_id)",
    ),
    Mutant(
        "failed-without-comparing",
        "3 attempts",
        "What is heard of an attempt counts for its transaction's current one: failures, results, commits.",
        COORDINATOR,
        "return active is not None and active.attempt == attempt",
        "return active is not None",
        seeds_max=3000,
    ),
    Mutant(
        "later-ones-not-failed",
        "4 failure",
        "An attempt that fails does not take the later transactions with it.",
        COORDINATOR,
        "for txid in range(first, next_txid(state)):",
        "for txid in range(first, first + 1):",
        killer=Killer.MODEL,
    ),
    Mutant(
        "room-for-one-too-many",
        "bounded",
        "The coordinator has room for one more transaction than topology.max.spout.pending.",
        COORDINATOR,
        "return len(state.active) < state.pending_max",
        "return len(state.active) <= state.pending_max",
        killer=Killer.MODEL,
    ),
    Mutant(
        "one-more-than-pending",
        "bounded",
        "One more transaction may be active than topology.max.spout.pending.",
        NEXT_WAVE,
        "room = self._pending_max - len(state.active)",
        "room = self._pending_max - len(state.active) + 1",
    ),
    Mutant(
        "fixed-after-the-commit-began",
        "2 sameness",
        "A batch is given to the committer before all that defines it has been stored.",
        RUNNER,
        "self.spout.named(self._batches.fix, fixed)\n",
        "self._batches.known.update(fixed)\n            for result in good:\n"
        "                self._step(Processed(result))\n"
        "            good = []\n            self.spout.named(self._batches.fix, fixed)\n",
    ),
    Mutant(
        "begun-batch-not-frozen",
        "2 sameness",
        "A batch whose commit has begun in this driver is read anew when it is replayed.",
        DEFINITIONS,
        "frozen = txid <= txid_begun",
        "frozen = txid < txid_begun",
    ),
    Mutant(
        "commit-id-drawn-anew",
        "2 sameness",
        "A batch whose commit may have begun commits under another id when it is replayed.",
        DEFINITIONS,
        "commit_id=batch.commit_id if frozen else self._world",
        "commit_id=self._world",
    ),
    Mutant(
        "found-batch-not-frozen",
        "2 sameness",
        "A driver that takes over reads a batch anew although its commit may have begun in the driver before.",
        "runtime/coordination/batch_store.py",
        "            begun += 1\n        return begun\n",
        "            begun += 1\n        return self.found_committed\n",
    ),
    Mutant(
        "wave-begins-at-committed",
        "2 sameness",
        "A wave begins where the last committed batch ended, not where the batch before its first one ended.",
        DEFINITIONS,
        "before = self._batches.known.get(txid - 1)",
        "before = self._batches.known.get(min(self._batches.known, default=txid))",
    ),
    Mutant(
        "failed-commit-not-revoked",
        "4 failure",
        "Later transactions that wait for their commits keep their place when an earlier one fails.",
        COORDINATOR,
        "return _with(state, again), [Revoke(first), *replays]",
        "return _with(state, again), [Revoke(first + state.pending_max), *replays]",
    ),
)
