"""A process that commits into stores, without a topology around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stormline import TransactionAttempt
from stormline.runtime.messages.wave import Failure
from stormline.runtime.tasks.commit_participants import CommitParticipants, CommitResources
from stormline.runtime.world.running_calls import Calls
from stormline.runtime.world.world import REAL
from stormline.topology.commit_participants import WHOLE_TOPOLOGY, CommitTarget, CommitToken
from stormline.topology.serialization import Registry

TOPOLOGY = "topo"


class Died(BaseException):
    """The process ends here."""


class OneCommit:
    """The context, as a store sees it, of one commit phase."""

    def __init__(self, process: Process, attempt: TransactionAttempt, commit_id: int, scope: str) -> None:
        self.attempt = attempt

        def token() -> CommitToken:
            return CommitToken(process.topology, scope, process.epoch, attempt, commit_id)

        self.token = token
        self.participants = CommitParticipants(process.resources, attempt, token, process.registry, Calls(REAL))

    def take_part(self, attempt: TransactionAttempt, key: Any, open_resource: Any) -> Any:
        return self.participants.take_part("test", attempt, key, open_resource)


Work = Callable[[Any, TransactionAttempt], Any]


class Process:
    """A driver in one epoch, or a worker."""

    def __init__(self, epoch: int = 1, topology: str = TOPOLOGY, registry: Registry | None = None) -> None:
        self.epoch = epoch
        self.topology = topology
        self.registry = registry or Registry()
        self.resources = CommitResources(REAL)
        self._attempts = 0

    def begin(self, txid: int, commit_id: int | None = None, scope: str = WHOLE_TOPOLOGY, attempt: int = 0) -> Any:
        """Return the `OneCommit` of a commit phase that begins; a transaction has one commit id unless told."""
        self._attempts += 1
        made = TransactionAttempt(txid, attempt or (self.epoch - 1) * 1000 + self._attempts)
        return OneCommit(self, made, 7000 + txid if commit_id is None else commit_id, scope)

    def commit(self, txid: int, *work: Work, **how: Any) -> Any:
        """Let bolts work in one commit phase, and commit it; return what the last of them returned."""
        phase = self.begin(txid, **how)
        result = None
        try:
            for one in work:
                result = one(phase, phase.attempt)
            failure = phase.participants.commit(lambda: True)
        finally:
            phase.participants.abort()
        if failure is not None:
            raise CommitFailed(failure)
        return result

    def hold(self, store: CommitTarget, first: int, *works: Work) -> tuple[Any, list[Any]]:
        """Let the bolts of consecutive transactions work in one transaction of the database.

        One that raises is dropped, and the last. Return the participant that ends them, and what each has returned.
        """
        resource: Any = self.resources.get(store, store.open_resource)
        last: Any = None
        results = []
        for txid, work in enumerate(works, start=first):
            phase = self.begin(txid)
            made = resource.begin(phase.token(), self.registry) if last is None else last.follow(phase.token())
            phase.participants.share(store, str(store), made)
            try:
                results.append(work(phase, phase.attempt))
            except Exception as error:
                results.append(error)
                made.drop()
                break
            finally:
                phase.participants.close()
            made.hold()
            last = made
        return last, results

    def commit_group(self, store: CommitTarget, first: int, *works: Work) -> list[Any]:
        """Let them become durable together, as `hold` has them; return what each work has returned."""
        last, results = self.hold(store, first, *works)
        try:
            last.prepare()
            last.commit()
        except BaseException:
            last.abort()
            raise
        return results

    def end(self) -> None:
        """Close the connections."""
        for close in self.resources.closes():
            close()


class CommitFailed(Exception):
    """What prepare or commit of a participant raised."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure
