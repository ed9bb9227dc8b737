"""Faults of two-phase sinks: one at least for each of the rules R1 to R8 of docs/two_phase_commit.md."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

KEEPER = "runtime/coordination/sink_keeper.py"
SWEEP = "runtime/coordination/sink_sweep.py"
DEFINITIONS = "runtime/coordination/batch_definitions.py"

SINKS = (
    Mutant(
        "executions-share-a-label",
        "7 one execution",
        "R1: two executions of one Spark task name their transactions alike.",
        "runtime/tasks/bolt_tasks.py",
        "attempt.attempt_id, task, execution)",
        "attempt.attempt_id, task, 0)",
    ),
    Mutant(
        "handles-are-not-stored",
        "2 sameness",
        "R2: what fixes a batch does not hold the handles of what was pre-committed for it.",
        DEFINITIONS,
        "known.metadata, True, result.rows, result.partitions, commit_id, self._group_max, handles\n",
        "known.metadata, True, result.rows, result.partitions, commit_id, self._group_max\n",
    ),
    Mutant(
        "decided-batch-is-written-again",
        "2 sameness",
        "R3: a replay of a batch whose handles are durable writes its rows once more.",
        "runtime/tasks/sink_turn.py",
        "self._swallows = decided and semantic is Semantic.EXACTLY_ONCE",
        "self._swallows = False",
    ),
    Mutant(
        "decided-handles-are-withdrawn",
        "2 sameness",
        "R3: where a batch fails whose commit had begun, its handles are aborted with those of later ones.",
        DEFINITIONS,
        "if later >= txid and later > txid_begun and batch.handles",
        "if later >= txid and batch.handles",
    ),
    Mutant(
        "recorded-before-sinks-have-committed",
        "5 complete input",
        "R4: a transaction is recorded as committed, and what was pre-committed for it is not.",
        "runtime/commit/commit_phase.py",
        "if failure is None and self._handles and not self._abandoned:",
        "if failure is None and self._handles and self._abandoned:",
    ),
    Mutant(
        "nothing-is-swept",
        "liveness",
        "R5: what nobody reported is left behind for ever.",
        KEEPER,
        "if self._sweep_due and not self._closed:",
        "if self._closed:",
    ),
    Mutant(
        "swept-once",
        "liveness",
        "R5: a driver looks through what was left behind once, and what a zombie pre-commits late stays.",
        KEEPER,
        "                self._sweep_due = False\n",
        "                self._sweep_due, self._components = False, ()\n",
    ),
    Mutant(
        "nothing-is-swept-at-the-end",
        "liveness",
        "R5: what was left behind since the last sweep stays when the topology ends.",
        KEEPER,
        "            for component in self._components:\n                self._sweep(component)\n\n    # ---",
        "\n    # ---",
    ),
    Mutant(
        "at-work-stays-at-the-end",
        "liveness",
        "R5: what attempts have pre-committed that were at work when a topology ends stays, with its locks.",
        KEEPER,
        "            if in_order:\n",
        "            if not in_order:\n",
    ),
    Mutant(
        "undecided-are-not-kept",
        "4 failure",
        "R6: what a driver finds on record, undecided, and could not withdraw is aborted as it ends.",
        KEEPER,
        "            if batch.fixed and txid > self._commits.committed:\n",
        "            if batch.fixed and self._commits.committed < txid <= self._commits.begun:\n",
        seeds_max=6000,
        seed=4094,
    ),
    Mutant(
        "aborted-while-on-record",
        "4 failure",
        "R6: what a failed attempt has pre-committed is aborted, and the record still names it.",
        KEEPER,
        "            self._batches.fix(undecided)\n",
        "            pass\n",
    ),
    Mutant(
        "driver-keeps-what-it-finds-undecided",
        "4 failure",
        "R6: a driver that starts aborts what later batches have on record, and leaves the record as it is.",
        KEEPER,
        "        self.failed(self._commits.begun + 1)\n",
        "        self._kept = {txid: it for txid, it in self._kept.items() if txid <= self._commits.begun}\n",
    ),
    Mutant(
        "lost-taken-for-committed",
        "10 stop or replay",
        "R7: a topology goes on though the sink has lost what was decided.",
        "runtime/commit/sink_commits.py",
        "                return self._lost(handle)\n",
        "                return None\n",
    ),
    Mutant(
        "zombie-sweeps-newer-work",
        "6 fencing",
        "R8: a forgotten driver aborts what its successor has pre-committed.",
        SWEEP,
        "        if label.epoch > self.epoch or (kept is not None and label.text in kept.labels):\n"
        "            return False\n"
        "        if label.epoch < self.epoch or label.txid <= self.committed:\n",
        "        if kept is not None and label.text in kept.labels:\n"
        "            return False\n"
        "        if label.epoch != self.epoch or label.txid <= self.committed:\n",
        seed=385,
    ),
    Mutant(
        "sweep-forgets-what-is-decided",
        "2 sameness",
        "R8: a sweep aborts what a driver before has decided.",
        SWEEP,
        "label.epoch > self.epoch or (kept is not None and label.text in kept.labels):",
        "label.epoch > self.epoch:",
    ),
    Mutant(
        "sweep-aborts-what-is-at-work",
        "3 attempts",
        "R8: a sweep aborts what an attempt has pre-committed that may count yet.",
        SWEEP,
        "if label.attempt < self.newest.get(label.txid, 0):",
        "if label.attempt <= self.newest.get(label.txid, 0):",
        seeds_max=2000,
    ),
)
