"""Further faults of the two phases, on other lines: what is decided, kept and delivered."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

PHASES = (
    Mutant(
        "wave-thinks-too-much-committed",
        "2 sameness",
        "A wave is told that a transaction is committed of which a commit effect may have happened: it may come again.",
        "runtime/topology_runner.py",
        "            committed=self._batches.committed,\n",
        "            committed=begun,\n",
    ),
    Mutant(
        "begun-not-noted",
        "2 sameness",
        "A committer does not note that a commit has begun, of which effects may have happened.",
        "runtime/committer.py",
        "            self._begun = result.attempt.transaction_id\n",
        "            self._begun = self._committed\n",
    ),
    Mutant(
        "any-commit-is-next",
        "1 order",
        "The committer commits what it is given first, whatever was recorded before.",
        "runtime/committer.py",
        "if self._todo and self._todo[0].attempt.transaction_id == self._committed + 1:",
        "if self._todo and self._todo[0].attempt.transaction_id > self._committed:",
    ),
    Mutant(
        "failures-of-later-ones-kept-processed",
        "4 failure",
        "A later transaction that was processed counts as processed still when an earlier one has failed.",
        "runtime/coordinator.py",
        "again[txid] = replace(active, attempt=attempt, status=Status.PROCESSING)",
        "again[txid] = replace(active, attempt=attempt, status=active.status if txid > first else Status.PROCESSING)",
    ),
    Mutant(
        "committed-does-not-go-on",
        "liveness",
        "When a transaction is recorded, the next one that waits is not told to commit.",
        "runtime/coordinator.py",
        "return _commit_head(replace(state, committed=txid, active=state.active.without_first()))",
        "return replace(state, committed=txid, active=state.active.without_first()), []",
    ),
    Mutant(
        "good-ones-after-a-bad-one",
        "4 failure",
        "Transactions of a wave after one that failed are accepted.",
        "runtime/topology_runner.py",
        "        good = current[:bad]\n",
        "        good = [r for r in current if r.failure is None]\n",
    ),
    Mutant(
        "known-batch-forgotten-too-early",
        "exactly once",
        "With the record of a transaction it is forgotten where its batch ended.",
        "runtime/batches.py",
        "        self.known.pop(txid - 1, None)\n",
        "        self.known.pop(txid, None)\n",
    ),
    Mutant(
        "fixed-in-memory-only",
        "2 sameness",
        "What defines a batch is known to the driver only, and not stored, when its commit begins.",
        "runtime/batches.py",
        "        self._put(batches)\n\n    def remember",
        "        self.known.update(batches)\n\n    def remember",
    ),
    Mutant(
        "cleanup-from-begin-one-too-far",
        "2 sameness",
        "With each new batch the last committed one is removed too.",
        "runtime/batches.py",
        "self._state.cleanup_ops(self.committed))",
        "self._state.cleanup_ops(self.committed + 1))",
    ),
    Mutant(
        "positions-not-stored",
        "exactly once",
        "Partitions that gave nothing are left out of what is stored of a batch.",
        "runtime/batches.py",
        "for p, b in sorted(batch.partitions.items())]",
        "for p, b in sorted(batch.partitions.items()) if b.gave]",
    ),
    Mutant(
        "replay-takes-anew",
        "2 sameness",
        "A partition whose batch is stored is asked for a new one when that is replayed.",
        "runtime/definitions.py",
        "        keeps = frozen or self._kind is not ComponentKind.OPAQUE_SPOUT\n",
        "        keeps = self._kind is ComponentKind.OPAQUE_SPOUT\n",
    ),
    Mutant(
        "version-of-a-new-value",
        "2 sameness",
        "A value that was written again is expected at the version that it had before.",
        "runtime/state_tree.py",
        "0 if change.version is None else next_version(change.version))",
        "0 if change.version is None else change.version)",
    ),
    Mutant(
        "downstream-of-failed-turn",
        "10 stop",
        "The bolts downstream of a committer that failed have their turn all the same.",
        "runtime/commit_runner.py",
        "            if failure is not None or self._abandoned:\n                break\n            turn.run",
        "            if self._abandoned:\n                break\n            turn.run",
    ),
    Mutant(
        "first-emission-only",
        "5 complete",
        "Of what several tasks emit for one task downstream in a commit, only the last is delivered.",
        "runtime/commit_runner.py",
        "                inbox.setdefault(delivery[2], []).append(delivery)\n",
        "                inbox[delivery[2]] = [delivery]\n",
    ),
    Mutant(
        "state-of-before-prepare",
        "5 complete",
        "What a bolt has gathered is put into it before it is prepared, which makes it empty again.",
        "runtime/commit_runner.py",
        "        self._bolt.prepare(conf, context, self.collector, self._attempt)\n"
        "        if self._deferred.gathered is not None:\n"
        "            restore_gathered(self._bolt, self._deferred.gathered, self._env.registry)\n",
        "        if self._deferred.gathered is not None:\n"
        "            restore_gathered(self._bolt, self._deferred.gathered, self._env.registry)\n"
        "        self._bolt.prepare(conf, context, self.collector, self._attempt)\n",
    ),
    Mutant(
        "emitter-does-not-commit",
        "10 stop",
        "The emitters of a committer spout are not asked to commit.",
        "runtime/commit_runner.py",
        "        failure = self._commit_emitters()\n",
        "        failure = None\n",
    ),
)
