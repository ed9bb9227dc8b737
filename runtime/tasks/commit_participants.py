"""CommitParticipants: what takes part in one commit phase beside the bolts, and ends with it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable

from stormline.runtime.errors import NotCommitting
from stormline.runtime.messages.wave import Failure
from stormline.runtime.tasks.user_code import UserCode, run_guarded
from stormline.runtime.world.running_calls import Calls
from stormline.runtime.world.world import World
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.commit_participants import CommitParticipant, CommitResource, CommitToken
from stormline.topology.serialization import Registry

log = logging.getLogger("stormline")

OpenResource = Callable[[], CommitResource]


class CommitResources:
    """The resources of one process, by key: each is opened when a bolt first asks for it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._open: dict[Hashable, CommitResource] = {}
        self._lock = world.lock()

    def get(self, key: Hashable, open_resource: OpenResource) -> CommitResource:
        """Return the resource of this key."""
        with self._lock:
            if key not in self._open:
                self._open[key] = open_resource()
            return self._open[key]

    def closes(self) -> list[Callable[[], None]]:
        """Return what closes each resource, and forget them."""
        with self._lock:
            closes = [resource.close for resource in self._open.values()]
            self._open = {}
            return closes


class CommitParticipants:
    """Those of one commit phase, or on the executors of one task's. Each begins when a bolt first asks for it."""

    def __init__(
        self,
        resources: CommitResources,
        attempt: TransactionAttempt,
        token: Callable[[], CommitToken],
        registry: Registry,
        calls: Calls,
    ) -> None:
        self._resources = resources
        self._attempt = attempt
        self._token = token
        self._registry = registry
        self._calls = calls
        self._joined: dict[Hashable, tuple[str, CommitParticipant]] = {}
        self._over = False
        self._lock = resources.world.lock()  # held while one begins: others that ask for it have to wait for it anyway

    def take_part(
        self, component: str, attempt: TransactionAttempt, key: Hashable, open_resource: OpenResource
    ) -> CommitParticipant:
        """Return the participant of this key, begun if it is asked for first."""
        with self._lock:
            if attempt != self._attempt or self._over:
                raise NotCommitting.of(component, attempt)
            if key not in self._joined:
                resource = self._resources.get(key, open_resource)
                self._joined[key] = resource.name, resource.begin(self._token(), self._registry)
            return self._joined[key][1]

    def share(self, key: Hashable, name: str, participant: CommitParticipant) -> None:
        """Let bolts use a participant that has begun; whoever shares it sees to its end."""
        with self._lock:
            self._joined[key] = name, participant

    def close(self) -> None:
        """Let nobody take part any more."""
        self._take_over()

    def commit(self, wanted: Callable[[], bool]) -> Failure | None:
        """Prepare all, then commit all, in the order in which they began; return why that failed, or None.

        What has not committed then is aborted, and so is all the rest as soon as the commit phase is not `wanted`.
        """
        joined = self._take_over()
        failure: Failure | None = None
        for name, participant in joined:
            if wanted() and failure is None:
                failure = run_guarded(self._of(name), "prepare", participant.prepare)
        while joined and wanted() and failure is None:
            name, participant = joined[0]
            failure = run_guarded(self._of(name), "commit", participant.commit)
            if failure is None:
                del joined[0]
        self._abort(joined)
        return failure

    def abort(self) -> None:
        """Abort all; nobody takes part any more."""
        if not self._over:  # `commit` has left nothing; a lock for each commit would be for nothing
            self._abort(self._take_over())

    def _take_over(self) -> list[tuple[str, CommitParticipant]]:
        with self._lock:
            self._over = True
            joined, self._joined = list(self._joined.values()), {}
            return joined

    def _of(self, name: str) -> UserCode:
        return UserCode(name, None, self._attempt, self._calls)

    def _abort(self, joined: list[tuple[str, CommitParticipant]]) -> None:
        for name, participant in joined:
            try:
                participant.abort()
            except BaseException:  # whatever it is, the others are aborted too
                log.exception("aborting %s in %s", self._attempt, name)
