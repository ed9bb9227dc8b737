"""Faults of what a driver believes of its ownership, and of what it reads of it."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

COMMITTER = "runtime/committer.py"
OWNERSHIP = "runtime/zookeeper_ownership.py"

OWNERSHIP_FAULTS = (
    Mutant(
        "record-proves-from-its-answer",
        "6 fencing",
        "A record shows the ownership from when its answer came, not from when it was sent: a driver may sleep between.",
        COMMITTER,
        "                self._proved = begun\n",
        "                self._proved = passed_secs()\n",
    ),
    Mutant(
        "proof-counts-from-its-answer",
        "6 fencing",
        "A proof of the ownership counts from when its answer came: a driver that slept meanwhile begins a commit.",
        COMMITTER,
        "            self._proved = now\n",
        "            self._proved = passed_secs()\n",
    ),
    Mutant(
        "check-of-an-earlier-connection",
        "6 fencing",
        "A check of the ownership over an earlier connection makes certain, though there is none now.",
        OWNERSHIP,
        "                    if connection == self._connection:  # a",
        "                    if self._lost is None:  # a",
    ),
    Mutant(
        "owner-read-from-a-follower",
        "6 fencing",
        "Whose the topology is is read without sync: a follower that lags says what was.",
        "runtime/zookeeper_session.py",
        "        self._answer(self._client.sync_async(path), deadline)\n        data, stat",
        "        data, stat",
    ),
    Mutant(
        "claim-read-from-a-follower",
        "6 fencing",
        "A driver that claims reads without sync: it is refused for one that has ended.",
        "runtime/zookeeper_claim.py",
        "    session.sync(node)\n",
        "",
    ),
    Mutant(
        "second-half-first",
        "2 sameness",
        "Of a write that is too large for one, the second half is written first.",
        "runtime/batches.py",
        "            self._write(ops[:half])\n            self._write(ops[half:])\n",
        "            self._write(ops[half:])\n            self._write(ops[:half])\n",
    ),
    Mutant(
        "first-commit-id-stays",
        "2 sameness",
        "A batch that is fixed anew, before any commit of it, keeps the stored commit id: it commits under another one.",
        "runtime/definitions.py",
        "result.partitions, wave_attempt.commit_id)",
        "result.partitions, known.commit_id or wave_attempt.commit_id)",
    ),
    Mutant(
        "commit-id-of-a-batch-that-was-fixed",
        "2 sameness",
        "A batch that was fixed, and of which no effect can have happened, keeps its commit id: where the state was set "
        "back another batch comes by the id of one that was committed.",
        "runtime/definitions.py",
        "commit_id=batch.commit_id if frozen else int(",
        "commit_id=batch.commit_id if batch.fixed else int(",
    ),
)
