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
        "            failure = commit.run.run()\n",
        "            self._store.write([record_of(commit.run.attempt)])\n            failure = commit.run.run()\n",
    ),
    Mutant(
        "failed-commit-counts",
        "1 order",
        "The next commit begins after one that failed, as after one that is recorded.",
        COMMITTER,
        "            if failure is None and error is None:\n",
        "            if error is None:\n",
    ),
    Mutant(
        "failed-while-it-is-recorded",
        "3 attempts",
        "An attempt whose commit is just being recorded fails by its deadline all the same.",
        COMMITTER,
        "or commit.timed_out or commit.recording:",
        "or commit.timed_out:",
    ),
    Mutant(
        "revokes-only-one",
        "4 failure",
        "Equality where order is meant: with a failed attempt only its own commit is taken back, not the later ones.",
        COMMITTER,
        "if result.attempt.transaction_id < txid)",
        "if txid and result.attempt.transaction_id != txid)",
    ),
    Mutant(
        "commits-without-connection",
        "6 fencing",
        "A commit begins while the connection to ZooKeeper is suspended.",
        COMMITTER,
        "if not self._store.connected():",
        "if self._closed:",
        seeds_max=3000,
    ),
    Mutant(
        "abandoned-commit-goes-on",
        "3 attempts",
        "An attempt whose commit is overdue, and has failed, goes on to call user code.",
        COMMITTER,
        "        commit.run.abandon()\n        return commit.run.attempt",
        "        return commit.run.attempt",
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
