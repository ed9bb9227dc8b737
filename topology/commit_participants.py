"""What takes part in a commit phase beside the bolts: the transaction of a database, of a broker, of a sink.

A bolt asks for it by `context.take_part`. Whoever asks first in a commit phase begins it, and all others share it: so
one transaction of the topology is one of the database. When all deferred bolts have finished, each participant is asked
to prepare, and when all are prepared, to commit; after that "n is committed" is recorded. Where anything fails, all
that have not committed are aborted, and the transaction is replayed: who has committed finds it out by its fence.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from stormline.topology.attempt import TransactionAttempt

if TYPE_CHECKING:
    from stormline.topology.serialization import Registry

WHOLE_TOPOLOGY = ""
"""The scope of what all tasks in the driver share."""


@dataclass(frozen=True, slots=True)
class CommitToken:
    """What a commit phase shows to those that take part in it: their fence compares it with the last one stored.

    `scope` says whose commit it is. In the driver all tasks commit together: `WHOLE_TOPOLOGY`. On the executors each
    task commits by itself: its component, index and parallelism.
    """

    topology: str
    scope: str
    epoch: int
    attempt: TransactionAttempt
    commit_id: int

    @property
    def txid(self) -> int:
        """The transaction."""
        return self.attempt.transaction_id


class CommitParticipant(Protocol):
    """One resource in one commit phase. Bolts may use it from several threads; these calls come after all of them."""

    def prepare(self) -> None:
        """Do all that may fail, so that only `commit` is left; called once, when all bolts have finished.

        Raises:
            FailedException: the attempt is to be replayed. Anything else stops the topology.
        """

    def commit(self) -> None:
        """Make it durable and visible; called once, when all participants are prepared. Raises as `prepare`.

        Where it raises, it may have happened all the same.
        """

    def abort(self) -> None:
        """Undo what can be undone, and let go of what is held; called instead of `commit`, or after it raised."""


class GroupParticipant(CommitParticipant, Protocol):
    """A participant that several consecutive transactions can share, so that they become durable in one step.

    Each has one of its own, which `hold` or `drop` ends; then `prepare` and `commit` of the last that was held are
    those of all that were.
    """

    @property
    def stored(self) -> bool:
        """Whether all that the transaction does here is durable already."""

    def hold(self) -> None:
        """Keep what the transaction did, to become durable with those that follow. Raises as `prepare`."""

    def follow(self, token: CommitToken) -> GroupParticipant | None:
        """Let the next transaction take part, after `hold`: it sees what those before it did.

        None: what was held has to become durable first. Raises as `CommitResource.begin`.
        """

    def drop(self) -> None:
        """Undo what this transaction did; where that takes others with it, `prepare` of those fails."""


class CommitTarget(Hashable, Protocol):
    """What all effects of a commit phase can be in: a store. Equal ones are the same."""

    def open_resource(self) -> CommitResource:
        """Return what takes part in the commit phases of this process; its participants are `GroupParticipant`s."""


class CommitResource(Protocol):
    """What participants come from, one for each process and topology: a database's connections, a producer."""

    @property
    def name(self) -> str:
        """What messages call it; no secret is in it."""

    def begin(self, token: CommitToken, registry: Registry) -> CommitParticipant:
        """Begin to take part in a commit phase. At most one participant of a scope is under way at a time.

        Args:
            token: who commits what.
            registry: the topology's wire format.

        Raises:
            FailedException: the attempt is to be replayed. Anything else stops the topology.
        """

    def close(self) -> None:
        """Let go of everything; called when the topology stops, not when the process is killed."""
