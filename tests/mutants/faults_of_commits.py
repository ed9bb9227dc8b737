"""Faults of the commit phase."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

COMMITTER = "runtime/coordination/committer.py"
COMMIT_RUNNER = "runtime/commit/commit_phase.py"

COMMITS = (
    Mutant(
        "recorded-before-its-effects",
        "1 order",
        "A transaction is recorded as committed before its commit phase runs.",
        COMMITTER,
        "            return phase.run()\n",
        "            self._store.write([record_of(phase.attempt)])\n            return phase.run()\n",
    ),
    Mutant(
        "abandoned-commit-goes-on",
        "3 attempts",
        "An attempt whose commit is overdue, and has failed, goes on to call user code.",
        COMMITTER,
        "        now.phase.abandon()\n        return now.phase.attempt",
        "        return now.phase.attempt",
    ),
    Mutant(
        "failure-on-executors-ignored",
        "10 stop or replay",
        "FailedException of a committer that is placed on the executors does not fail the attempt.",
        COMMIT_RUNNER,
        "failures += self.there.failures",
        "failures += [failure for failure in self.there.failures if failure.fatal]",
    ),
    Mutant(
        "failed-commit-ignored",
        "10 stop or replay",
        "FailedException of a committer in the driver does not fail the attempt.",
        COMMIT_RUNNER,
        "failures = [task.failure for task in self.here if task.failure is not None]",
        "failures = [task.failure for task in self.here if task.failure is not None and task.failure.fatal]",
    ),
    Mutant(
        "missing-replies-accepted",
        "5 complete input",
        "A turn of a commit on the executors succeeds although some bolt tasks have not replied.",
        "runtime/commit/executor_turn.py",
        "        if missing:\n",
        "        if missing and not replies:\n",
        seeds_max=2500,
        seed=599,
    ),
    Mutant(
        "commit-ids-of-other-waves-forgotten",
        "2 sameness",
        "With each wave the driver forgets the commit ids of transactions that wait for their commits.",
        "runtime/tasks/task_environment.py",
        "old.attempt_id < newest.get(old.transaction_id, 0)",
        "old.attempt_id != newest.get(old.transaction_id, 0)",
    ),
    Mutant(
        "task-commits-twice",
        "7 one execution",
        "A Spark task of a commit that Spark runs again calls user code again.",
        "runtime/commit/executor_messages.py",
        "    if spark_attempt == 0:\n",
        "    if spark_attempt >= 0:\n",
    ),
)
