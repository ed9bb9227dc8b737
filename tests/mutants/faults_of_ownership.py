"""Faults of what a driver believes of its ownership, and of what it reads of it."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

COMMITTER = "runtime/coordination/committer.py"
OWNERSHIP = "runtime/zookeeper/ownership.py"

OWNERSHIP_FAULTS = (
    Mutant(
        "record-proves-from-its-answer",
        "6 fencing",
        "A record shows the ownership from when its answer came, not from when it was sent: a driver may sleep "
        "between.",
        COMMITTER,
        "[record_of(record.attempt)])\n            self._proved = asked\n",
        "[record_of(record.attempt)])\n            self._proved = self._world.passed_secs()\n",
        seeds_max=6000,
        seed=1242,
    ),
    Mutant(
        "proof-counts-from-its-answer",
        "6 fencing",
        "A proof of the ownership counts from when its answer came: a driver that slept meanwhile begins a commit.",
        COMMITTER,
        "write([])\n            self._proved = asked\n",
        "write([])\n            self._proved = self._world.passed_secs()\n",
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
        "runtime/zookeeper/session.py",
        "        self._answer(self._client.sync_async(path), deadline)\n        data, stat",
        "        data, stat",
    ),
    Mutant(
        "claim-read-from-a-follower",
        "6 fencing",
        "A driver that claims reads without sync: it is refused for one that has ended.",
        "runtime/zookeeper/claim.py",
        "    session.sync(node)\n    names",
        "    names",
    ),
    Mutant(
        "second-half-first",
        "2 sameness",
        "Of a write that is too large for one, the second half is written first.",
        "runtime/coordination/batch_store.py",
        "            self._write(ops[:half])\n            self._write(ops[half:])\n",
        "            self._write(ops[half:])\n            self._write(ops[:half])\n",
    ),
    Mutant(
        "first-commit-id-stays",
        "2 sameness",
        "A batch that is fixed anew, before any commit of it, keeps the stored commit id: it commits under another "
        "one.",
        "runtime/coordination/batch_definitions.py",
        "commit_id, handles = wave_attempt.commit_id, result.handles",
        "commit_id, handles = known.commit_id or wave_attempt.commit_id, result.handles",
    ),
    Mutant(
        "commit-id-of-a-batch-that-was-fixed",
        "2 sameness",
        "A batch that was fixed, and of which no effect can have happened, keeps its commit id: where the state was "
        "set back another batch comes by the id of one that was committed.",
        "runtime/coordination/batch_definitions.py",
        "batch.commit_id if frozen else",
        "batch.commit_id if batch.fixed else",
    ),
    Mutant(
        "cleanup-of-the-committed",
        "2 sameness",
        "Emitters are told that what the last committed batch kept may go too: the next one comes again without it.",
        "runtime/tasks/emitter_task.py",
        'method_of(emitter, ITransactionalEmitter, "cleanup_before")(self._committed)',
        'method_of(emitter, ITransactionalEmitter, "cleanup_before")(self._committed + 1)',
    ),
    Mutant(
        "emitters-never-cleaned-up",
        "bounded",
        "Emitters are never told what may go.",
        "runtime/tasks/emitter_task.py",
        '            method_of(emitter, ITransactionalEmitter, "cleanup_before")(self._committed)\n',
        "",
    ),
    Mutant(
        "interruption-leaves-certain",
        "6 fencing",
        "A driver stays certain of its ownership when its connection breaks.",
        "runtime/zookeeper/ownership.py",
        "            self._certain = False\n            self._connection += 1\n",
        "            self._connection += 1\n",
    ),
    Mutant(
        "connections-not-counted",
        "6 fencing",
        "All connections have one number: a check of an earlier one counts for the present one.",
        "runtime/zookeeper/ownership.py",
        "            self._connection += 1\n            connection = self._connection\n",
        "            connection = self._connection\n",
    ),
    Mutant(
        "claim-not-watched",
        "6 fencing",
        "A driver does not see that its claim vanishes.",
        "runtime/zookeeper/ownership.py",
        "if event.type == EventType.DELETED:",
        "if event.type is None:",
    ),
    Mutant(
        "checks-after-interruption-skipped",
        "6 fencing",
        "After an interruption a driver is certain of its ownership without looking.",
        "runtime/zookeeper/ownership.py",
        "            self._check_later(connection)\n\n    def _live",
        "            self._certain = True\n\n    def _live",
    ),
    Mutant(
        "version-not-moved-on",
        "6 fencing",
        "The owner's version is expected where it was before the last write.",
        "runtime/zookeeper/store.py",
        "            self._owner_version = next_version(self._owner_version)\n",
        "",
    ),
    Mutant(
        "dead-claim-not-removed",
        "6 fencing",
        "A driver that takes over leaves the dead driver's claim in its way.",
        "runtime/zookeeper/claim.py",
        "        if stored.live is not None:\n            transaction.delete",
        "        if stored.live is None:\n            transaction.delete",
    ),
    Mutant(
        "living-driver-not-refused",
        "6 fencing",
        "A driver takes the topology from one that provably lives.",
        "runtime/zookeeper/claim.py",
        "                if alive:\n                    raise",
        "                if alive and wait_until is None:\n                    raise",
    ),
    Mutant(
        "claim-sent-without-version",
        "6 fencing",
        "A claim does not check that the owner is as it was read: two drivers claim at once.",
        "runtime/zookeeper/claim.py",
        '            transaction.set_data(f"{node}/owner", owner, version=stored.owner_version)\n        if',
        '            transaction.set_data(f"{node}/owner", owner)\n        if',
        seed=670,
    ),
    Mutant(
        "claim-answer-not-read",
        "6 fencing",
        "A driver does not recognise its own claim, and claims again.",
        "runtime/zookeeper/claim.py",
        "if stored.owner is not None and stored.owner.token == token:",
        "if stored.owner is not None and stored.owner.token is stored:",
    ),
)
