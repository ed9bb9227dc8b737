"""CommitGroup: the commit phases of consecutive transactions whose effects one store makes durable in one step.

They run one after another, each as by itself: its user code, its attempt, its token. What they share is the participant
of the store that all their effects are in. One that the store holds already is not run: all it would do is there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from stormline.runtime.commit.commit_phase import CommitPhase
from stormline.runtime.messages.engine import CommitEngine
from stormline.runtime.messages.wave import AttemptResult, Failure
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.runtime.tasks.user_code import UserCode, run_guarded
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.commit_participants import WHOLE_TOPOLOGY, CommitTarget, GroupParticipant

log = logging.getLogger("stormline")

T = TypeVar("T")

GROUP_SECS = 0.02
"""Time after which no further transaction joins a group: the first one must not wait long for those behind it."""

_ABANDONED = Failure("the commit phase", None, "it was abandoned", counts=False)


class CommitGroup:
    """The commit phases of a group. Those that end well become durable together; the first that fails ends it.

    Args:
        results: consecutive transactions that wait for their commits, at least one.
        begins: told of each phase before it begins; returns whether it is still wanted.
        ends: told when it has ended; returns the same.
        certain: whether the ownership is: without it no further one begins, as no commit does (law 6, fencing).

    `phases`: those that have begun. `failure`, `error`: why the last of them did not end well; an `error` is of user
    code that is called outside of any component's.
    """

    def __init__(
        self,
        env: TaskEnvironment,
        engine: CommitEngine,
        target: CommitTarget,
        results: Sequence[AttemptResult],
        begins: Callable[[CommitPhase], bool],
        ends: Callable[[CommitPhase], bool],
        certain: Callable[[], bool],
    ) -> None:
        self._env = env
        self._engine = engine
        self._target = target
        self._results = results
        self._begins = begins
        self._ends = ends
        self._certain = certain
        self._held: list[GroupParticipant] = []
        self.phases: list[CommitPhase] = []
        self.failure: Failure | None = None
        self.error: BaseException | None = None

    def run(self) -> int:
        """Run the commit phases in their order; return how many of them, from the first on, may become durable."""
        begun = self._env.world.monotonic()
        for result in self._results:
            try:
                phase = CommitPhase(self._env, result, self._engine)
            except BaseException as error:  # a user's copy method, say
                self.error = error
                break
            if not self._run(phase) or self._env.world.monotonic() - begun > GROUP_SECS or not self._certain():
                break
        return len(self._held)

    def _run(self, phase: CommitPhase) -> bool:
        """Run one commit phase; return whether it has ended well."""
        wanted = self._begins(phase)
        participant = self._participant(phase.attempt) if wanted else _ABANDONED
        failure: Failure | None = None
        if isinstance(participant, Failure):
            failure = participant
        elif participant is not None and not participant.stored:
            failure = phase.run_within(self._target, str(self._target), participant)
        wanted = self._ends(phase)
        if participant is None:  # those before have to become durable first
            return False
        self.phases.append(phase)
        failure = failure or (None if wanted else _ABANDONED)
        if not isinstance(participant, Failure):
            failure = failure or self._guarded(phase.attempt, "prepare", participant.hold)
            if failure is None:
                self._held.append(participant)
                return True
            self._undo(participant)
        self.failure = failure
        return False

    def _participant(self, attempt: TransactionAttempt) -> GroupParticipant | Failure | None:
        """Return what takes part for one transaction; None: it has to wait for those before it."""

        def begin() -> GroupParticipant | None:
            token = self._env.commit_token(attempt, WHOLE_TOPOLOGY)
            if self._held:
                return self._held[-1].follow(token)
            resource = self._env.commit_resources.get(self._target, self._target.open_resource)
            return cast(GroupParticipant, resource.begin(token, self._env.registry))

        return self._guarded(attempt, "begin", begin)

    def _undo(self, participant: GroupParticipant) -> None:
        try:
            if self._held:
                participant.drop()
            else:
                participant.abort()
        except BaseException:  # whatever it is, those before are made durable
            log.exception("undoing a commit in %s", self._target)

    def commit(self) -> Failure | None:
        """Make all that ended well durable, in one step; return why that failed, or None.

        Where it fails it may have happened all the same.
        """
        first, last = self.phases[0], self._held[-1]
        failure = self._guarded(first.attempt, "prepare", last.prepare) if first.wanted else None
        if failure is None and first.wanted:
            failure = self._guarded(first.attempt, "commit", last.commit)
            if failure is None:
                self._held = []
        return failure

    def abort(self) -> None:
        """Undo all that has not become durable."""
        if self._held:
            try:
                self._held.pop().abort()
            except BaseException:
                log.exception("aborting a commit in %s", self._target)
            self._held = []

    def _guarded(self, attempt: TransactionAttempt, where: str, call: Callable[[], T]) -> T | Failure:
        return run_guarded(UserCode(str(self._target), None, attempt, self._env.calls), where, call)
