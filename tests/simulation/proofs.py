"""Proofs of a simulated driver: what ZooKeeper's answers have told it of whose the topology is: law 6 (fencing)."""

from __future__ import annotations

from stormline.runtime.coordination.commit_queue import PROOF_SECS
from tests.simulation.scheduler import Process

COMMITTER = "stormline-commit-"
"""How the threads are named that commit, and record."""


class Proofs:
    """The newest answer that showed whose the topology is.

    `sent_at`: when that was asked. `late`: so many, one after another, were old when they came.
    """

    def __init__(self, process: Process) -> None:
        self._process = process
        self.sent_at = 0.0
        self.late = 0
        self._came_at = 0.0
        self._sent_before_pause = 0.0  # of the last one before a pause, where others came after it
        self._committer_heard_at = 0.0

    def came(self, sent_at: float) -> None:
        """See one come."""
        now = self._process.world.now
        if self._came_at < self._process.paused_at:
            self._sent_before_pause = self.sent_at
        self.sent_at, self._came_at = sent_at, now
        self.late = self.late + 1 if now - sent_at > PROOF_SECS else 0

    def answered(self, thread: str) -> None:
        """See an answer to whatever a thread has asked."""
        if thread.startswith(COMMITTER):
            self._committer_heard_at = self._process.world.now

    def committer_looked(self, secs: float) -> bool:
        """Return whether the committer may have looked just before the process was paused.

        It has not waited for an answer then, and there was a proof no older than so many seconds.
        """
        paused_at = self._process.paused_at
        sent_at = self.sent_at if self._came_at < paused_at else self._sent_before_pause
        return self._committer_heard_at < paused_at and paused_at - sent_at <= secs
