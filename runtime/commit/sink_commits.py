"""SinkCommits: commits what two-phase sinks have pre-committed for one transaction: only that is possible (rule R3)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from stormline.runtime.messages.sink_handle import SinkHandle
from stormline.runtime.messages.wave import Failure
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.runtime.tasks.user_code import UserCode, run_guarded
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.config import SINK_SETTLED, setting
from stormline.topology.two_phase_commit import CommitOutcome

log = logging.getLogger("stormline")

AGAIN_SECS = 0.1
"""Time after which a sink is asked again whose `commit` did not come through; twice as long each time."""

AGAIN_SECS_MAX = 5.0

LOOK_SECS = 0.2
"""Time between two looks whether it is to end meanwhile."""


class SinkCommits:
    """The handles of one transaction at their commit, one after another, again and again until each is committed.

    Args:
        attempt: whose commit phase this is.
        wanted: whether to go on where a sink has to be asked again.
    """

    def __init__(
        self,
        env: TaskEnvironment,
        attempt: TransactionAttempt,
        handles: Sequence[SinkHandle],
        wanted: Callable[[], bool],
    ) -> None:
        self._env = env
        self._attempt = attempt
        self._handles = handles
        self._wanted = wanted
        self._committed: list[SinkHandle] = []

    def run(self) -> Failure | None:
        """Commit all; return why that came to nothing, or None."""
        for handle in self._handles:
            failure = self._commit(handle)
            if failure is not None:
                return failure
            self._committed.append(handle)
        return None

    def _commit(self, handle: SinkHandle) -> Failure | None:
        again_secs = AGAIN_SECS
        while True:
            answer = self.ask(handle)
            if answer is CommitOutcome.DONE or answer is CommitOutcome.ALREADY:
                return None
            if answer is CommitOutcome.LOST:
                return self._lost(handle)
            if isinstance(answer, Failure) and answer.fatal:
                return answer
            why = answer.message if isinstance(answer, Failure) else "commit() says RETRY"
            who = f"the sink of bolt {handle.component!r} has not committed {handle.label}: {why}"
            if again_secs in (AGAIN_SECS, AGAIN_SECS_MAX):
                log.warning("%s; it was decided, and is asked again until it has", who)
            if not self._wait(again_secs):
                ends = f"{who}; it is committed when the topology goes on"
                return Failure(handle.component, None, ends, counts=False)
            again_secs = min(2 * again_secs, AGAIN_SECS_MAX)

    def ask(self, handle: SinkHandle) -> CommitOutcome | Failure:
        """Ask the sink once to commit; return what it says."""
        of = UserCode(handle.component, None, self._attempt, self._env.calls)
        return run_guarded(of, "commit", self._env.sinks.commit, handle)

    def _wait(self, secs: float) -> bool:
        """Wait; return whether it is wanted still."""
        until = self._env.world.monotonic() + secs
        while self._wanted() and self._env.world.monotonic() < until:
            self._env.world.sleep(min(LOOK_SECS, secs))
        return self._wanted()

    def _lost(self, handle: SinkHandle) -> Failure | None:
        """Return why the topology halts: neither to go on nor to write the rows again would be right (rule R7).

        None: a person has settled it.
        """
        if handle.label in setting(self._env.plan.config, SINK_SETTLED):
            log.warning(
                "%s of bolt %r is lost, and settled by hand: it is gone on without", handle.label, handle.component
            )
            return None
        at = self._handles.index(handle)
        committed = [known.label for known in self._committed] or "none"
        untried = [later.label for later in self._handles[at + 1 :]] or "none"
        return Failure(
            handle.component,
            None,
            f"the sink of bolt {handle.component!r} has lost transaction {handle.label}, which had been pre-committed "
            f"and decided: its rows are missing. Of the same batch are committed: {committed}; not tried since: "
            f"{untried}. Nothing later is committed until this is settled: find out why it is gone (the resource's own "
            "limit for prepared transactions may be too short), write its rows by hand, and let the topology go on "
            f"without it, by {SINK_SETTLED} = [{handle.label!r}]",
            fatal=True,
        )
