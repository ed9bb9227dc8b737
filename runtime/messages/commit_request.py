"""One turn of a commit on the executors: what a Spark task is given, and what it replies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from stormline.runtime.messages.wave import DeferredTask, Failure
from stormline.runtime.tuples.delivery import Delivery
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.readings import Readings


@dataclass(frozen=True, slots=True)
class RemoteTask:
    """One task of a deferred bolt that has its turn on the executors, and what it is given there, packed."""

    task: int
    given: DeferredTask


@dataclass(frozen=True, slots=True)
class CommitRequest:
    """One turn of the commit phase of one attempt: the tasks of `components` that are placed on the executors."""

    attempt: TransactionAttempt
    components: tuple[str, ...]
    tasks: tuple[RemoteTask, ...]
    commit_id: int = 0

    @property
    def title(self) -> str:
        """What a person reads in Spark's UI."""
        return f"commit of txid {self.attempt.transaction_id}: {', '.join(self.components)}"


@dataclass(frozen=True, slots=True)
class CommitPart:
    """What one Spark task of a turn is given."""

    attempt: TransactionAttempt
    tasks: tuple[RemoteTask, ...]
    commit_id: int


@dataclass(frozen=True, slots=True)
class TaskReply:
    """What became of one bolt task."""

    task: int
    sent: Sequence[Delivery] = ()
    failure: Failure | None = None
    metrics: Readings = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PartReply:
    """What one Spark task of a turn says. `refusal`: why it ran none of its bolt tasks."""

    attempt: TransactionAttempt | None
    tasks: tuple[TaskReply, ...] = ()
    refusal: str | None = None
