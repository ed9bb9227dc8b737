"""Engine: what runs waves, and commits placed on the executors. Spark is one; another runs in this process."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from stormline.runtime.messages.commit_request import CommitRequest
from stormline.runtime.messages.wave import Wave, WaveResult
from stormline.runtime.world.running_calls import CallReport
from stormline.topology.attempt import TransactionAttempt


class EngineFailure(Exception):
    """A whole wave, or one turn of a commit, came to nothing. `lasting`: trying again would give the same."""

    def __init__(self, message: str, lasting: bool = False) -> None:
        super().__init__(message)
        self.lasting = lasting


class CommitEngine(Protocol):
    """Runs turns of commits on the executors."""

    def commit(self, request: CommitRequest) -> list[bytes]:
        """Run one turn, called from one thread at a time; return the sealed replies of the Spark tasks that replied.

        Raises:
            EngineFailure: nothing came back; effects may have happened, and may still happen for a while.
        """

    def cancel_commit(self, attempt: TransactionAttempt) -> None:
        """Make a `commit` of this attempt that runs in another thread end soon, and one that comes yet at once.

        Cancelling is not fencing: an effect under way may still happen.
        """

    def calls(self, attempts: Collection[TransactionAttempt]) -> list[CallReport]:
        """Return the calls of user code that run on the executors for these attempts, as far as that is known here."""


class Engine(CommitEngine, Protocol):
    """Runs waves, one at a time, and turns of commits that are placed on the executors, at the same time."""

    def process(self, wave: Wave) -> WaveResult:
        """Run the processing phase; raise `EngineFailure` where nothing came back."""

    def cancel(self) -> None:
        """Make a `process` that runs in another thread end soon. What it gives is of no use any more."""

    def close(self) -> None:
        """Let components clean up in the processes that this engine used."""
