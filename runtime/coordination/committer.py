"""Committer: does what the commit queue says, in a thread of its own; runs commit phases and writes their records."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from stormline.runtime.commit.commit_group import CommitGroup
from stormline.runtime.commit.commit_phase import CommitPhase
from stormline.runtime.coordination.batch_store import record_of
from stormline.runtime.coordination.commit_queue import Begin, CommitQueue, Idle, Next, Prove, Record, Stage
from stormline.runtime.messages.engine import CommitEngine
from stormline.runtime.messages.wave import AttemptResult, Failure
from stormline.runtime.state.state_store import StateStore
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.commit_participants import CommitTarget
from stormline.topology.readings import Readings

log = logging.getLogger("stormline")

LOOK_SECS = 0.02
"""Time between two looks at a connection that is suspended."""

END_LOOK_SECS = 0.05
"""Time between two looks whether the last commit has ended."""

SIGNAL_SECS = 0.005
"""Time between two signals that commits have ended, while more of them follow: waking the loop for each would take
longer than a small commit."""


@dataclass(frozen=True, slots=True)
class CommitEnded:
    """A commit has come to its end.

    It is recorded where there is neither a `failure` of the commit phase nor an `error`: why nothing more can be
    committed by this driver. `executing_secs`: see `CommitPhase.executing_secs`.
    """

    result: AttemptResult
    failure: Failure | None = None
    error: BaseException | None = None
    executing_secs: Mapping[str, float] = field(default_factory=dict)
    metrics: Readings = field(default_factory=dict)

    @property
    def attempt(self) -> TransactionAttempt:
        """Whose commit it was."""
        return self.result.attempt


@dataclass(slots=True, eq=False)
class _Now:
    """The commit phase that runs, since when, and when it was last told of."""

    phase: CommitPhase
    begun: float
    told_at: float = 0.0


def _of_group(failure: Failure | None, members: int) -> Failure:
    """Return why the first of a group is to be replayed, and so all of them.

    Of several nobody knows whose fault it was: each commits by itself then, and the one to blame fails alone.
    """
    if failure is None:
        return Failure("the commit phase", None, "it ended after its deadline", counts=False)
    if members == 1:
        return failure
    message = f"{failure.message}; {members} transactions were to become durable together, and are replayed one by one"
    return Failure(failure.component, failure.task, message, counts=False)


class Committer:
    """Does what the commit queue says, in a thread of its own: one commit after another without a turn of the loop.

    A commit that outlives its deadline begins no further call of user code, and is not recorded; but the one that runs
    keeps its place until it comes back, so that its effects end before the next attempt's begin, as in Storm.

    Args:
        queue: what is committed and what has begun; from now on only this committer touches it.
        on_end: called from the committer's thread when there is something for `take_ended`; within `SIGNAL_SECS`, or
            the time of the next commit if that is longer.
    """

    def __init__(
        self,
        env: TaskEnvironment,
        engine: CommitEngine,
        store: StateStore,
        queue: CommitQueue,
        on_end: Callable[[], None],
        timeout_secs: float | None,
    ) -> None:
        self._env = env
        self._world = env.world
        self._engine = engine
        self._store = store
        self._queue = queue
        self._on_end = on_end
        self._timeout_secs = timeout_secs
        self._lock = env.world.condition()
        self._now: _Now | None = None
        self._ended: list[CommitEnded] = []
        self._signalled = 0.0
        self._proved = 0.0
        self.overdue_in = ""
        """Where the commit was, when `overdue` last returned its attempt."""
        name = f"stormline-commit-{self._env.plan.topology_id}"
        self.thread = env.world.start_thread(name, self._work)

    # ------------------------------------------------------------------------------------ from the topology's loop

    @property
    def txid_committed(self) -> int:
        """The last transaction that is recorded."""
        return self._queue.committed

    @property
    def txid_begun(self) -> int:
        """The last transaction of which a commit effect may have happened."""
        return self._queue.begun

    @property
    def busy(self) -> bool:
        """Whether a commit runs or waits, or has ended and was not taken."""
        with self._lock:
            return bool(self._queue.running is not None or self._queue.waiting or self._ended)

    @property
    def hangs(self) -> bool:
        """Whether a commit runs that is not recorded, whenever it ends: it has passed its deadline."""
        with self._lock:
            return self._queue.running is not None and self._queue.running.revoked_from is not None

    def add(self, result: AttemptResult) -> None:
        """Commit a processed attempt when its turn comes, unless it is time to stop."""
        with self._lock:
            self._queue.add(result)
            self._lock.notify_all()

    def revoke(self, txid: int) -> None:
        """Take back the commits from `txid` on."""
        with self._lock:
            self._queue.revoke(txid)

    def stop(self) -> None:
        """Begin no further commit. May be called from any thread."""
        with self._lock:
            self._queue.stop()
            now = self._now
        if now is not None:
            now.phase.end_soon()

    def take_ended(self) -> list[CommitEnded]:
        """Return the commits that have come to their ends since the last call, in order."""
        with self._lock:
            ended, self._ended = self._ended, []
            return ended

    def let_end(self, secs: float) -> list[CommitEnded]:
        """Wait at most so long for the commit that runs; return the commits that have ended, as `take_ended`."""
        until = self._world.monotonic() + secs
        while self._queue.running is not None and self._world.monotonic() < until:
            self._world.sleep(END_LOOK_SECS)
        return self.take_ended()

    def overdue(self) -> TransactionAttempt | None:
        """Return, once, the attempt whose commit phase has passed its deadline; it can be recorded no more."""
        with self._lock:
            now, running = self._now, self._queue.running
            if now is None or running is None or running.revoked_from is not None or self._timeout_secs is None:
                return None
            if self._world.monotonic() - now.begun < self._timeout_secs:
                return None
            if now.phase.only_sinks_left:  # to replay it would help nobody: only their commit is possible
                now.begun = self._world.monotonic()
                log.warning("the commit of %s waits for its sinks; it is in %s", now.phase.attempt, now.phase.where())
                return None
            if not self._queue.revoke_running(now.phase.attempt.transaction_id):
                return None
        self.overdue_in = now.phase.where()
        now.phase.abandon()
        return now.phase.attempt

    def tell_if_hung(self) -> None:
        """Say, again and again, where a commit stands that runs on after its deadline: all that follows waits."""
        if self._timeout_secs is None or not self.hangs:
            return
        now, at = self._now, self._world.monotonic()
        if now is None or at - now.told_at < self._timeout_secs:
            return
        now.told_at = at
        log.warning(
            "the commit of %s has run for %.0f s, longer than topology.message.timeout.secs. Its replay, and all later "
            "transactions, wait for its end: what it still does must not come after theirs. It is in %s",
            now.phase.attempt,
            at - now.begun,
            now.phase.where(),
        )

    def deadline(self) -> float | None:
        """Return the monotonic time at which the commit phase that runs needs a look, if any."""
        with self._lock:
            now, running = self._now, self._queue.running
            if now is None or running is None or running.stage is Stage.RECORDING or self._timeout_secs is None:
                return None
            return (now.begun if running.revoked_from is None else now.told_at) + self._timeout_secs

    def close(self) -> None:
        """Let the thread end; a commit that still runs can emit nothing more, and is not recorded."""
        with self._lock:
            self._queue.close()
            now = self._now
            self._lock.notify_all()
        if now is not None:
            now.phase.abandon()

    # ------------------------------------------------------------------------------------ in its thread

    def _work(self) -> None:
        while (step := self._next()) is not Idle.END:
            if isinstance(step, Begin):
                if self._env.groups.target is None:
                    (result,) = step.results
                    self._commit(result)
                else:
                    self._commit_group(step.results, self._env.groups.target)
                self._signal()
            elif isinstance(step, Prove):
                self._prove(step.result)
            elif step is Idle.LOOK_AGAIN:
                self._world.sleep(LOOK_SECS)

    def _next(self) -> Next:
        """Return what the queue says; where that is to wait, when there may be something else."""
        connected, proof_secs = self._store.connected(), self._world.passed_secs() - self._proved
        with self._lock:
            step = self._queue.next(connected, proof_secs)
            if step is Idle.WAIT:
                self._lock.wait()
            return step

    def _prove(self, result: AttemptResult) -> None:
        """Ask ZooKeeper for the ownership: a driver that slept must not begin a commit."""
        asked = self._world.passed_secs()
        try:
            self._store.write([])
            self._proved = asked
        except BaseException as error:
            with self._lock:
                self._queue.stop()
                self._ended.append(CommitEnded(result, error=error))
            self._on_end()

    def _commit(self, result: AttemptResult) -> None:
        """Run a commit phase and record it."""
        try:
            phase = CommitPhase(self._env, result, self._engine)
        except BaseException as error:  # a user's copy method, say: the loop stops the topology with it
            with self._lock:
                self._queue.finished(failed=True)
                self._queue.stop()
                self._ended.append(CommitEnded(result, error=error))
            return
        self._begins(phase)
        failure = self._run(phase)
        counted = phase.executing_secs(), phase.metrics()
        with self._lock:
            record = self._queue.finished(failed=failure is not None)
            if record is None:
                failure = failure or Failure("the commit phase", None, "it ended after its deadline", counts=False)
                self._end(CommitEnded(result, failure, None, *counted))
        if record is not None:
            lost = self._write(record)
            with self._lock:
                self._queue.recorded(written=lost is None)
                self._end(CommitEnded(result, None, lost, *counted))

    def _begins(self, phase: CommitPhase) -> bool:
        """Record that a commit phase begins; return whether it is wanted still."""
        with self._lock:
            self._now = _Now(phase, self._world.monotonic())
            wanted = self._queue.wanted(phase.attempt.transaction_id)
        if not wanted:  # it was closed meanwhile
            phase.abandon()
        return wanted

    def _ends(self, phase: CommitPhase) -> bool:
        """Record that it has ended, from when on it cannot be overdue; return whether it is wanted still."""
        with self._lock:
            self._now = None
            return self._queue.wanted(phase.attempt.transaction_id)

    def _commit_group(self, results: tuple[AttemptResult, ...], target: CommitTarget) -> None:
        """Run the commit phases of a group, make those that end well durable in one step, and record the last."""
        group = CommitGroup(self._env, self._engine, target, results, self._begins, self._ends, self._store.connected)
        held = group.run()
        with self._lock:
            kept = self._queue.cut(held, failed=group.failure is not None)
        failure: Failure | None = None
        if kept:
            self._begins(group.phases[0])
            failure = group.commit()
        group.abort()
        ended = [
            CommitEnded(phase_of, None, None, phase.executing_secs(), phase.metrics())
            for phase_of, phase in zip(results, group.phases, strict=False)
        ]
        with self._lock:
            record = self._queue.finished(failed=failure is not None) if kept else None
            self._now = None
        if record is not None:
            lost = self._write(record)
            with self._lock:
                self._queue.recorded(written=lost is None)
                self._ended += ended[:kept] if lost is None else [replace(ended[0], error=lost)]
        elif held:
            with self._lock:
                self._ended.append(replace(ended[0], failure=_of_group(failure, kept)))
        if (record is not None or not held) and (group.failure or group.error) is not None:
            with self._lock:
                if group.error is not None:
                    self._queue.stop()
                self._ended.append(CommitEnded(results[held], group.failure, group.error))

    def _run(self, phase: CommitPhase) -> Failure | None:
        try:
            return phase.run()
        except BaseException as cause:  # ours, not the user's: whatever it is, the topology must hear of it
            text = "".join(traceback.format_exception(cause))
            return Failure("the commit phase", None, repr(cause), traceback=text, fatal=True)

    def _write(self, record: Record) -> BaseException | None:
        """Write a record, which proves the ownership too; return what went wrong: the loop decides what follows."""
        asked = self._world.passed_secs()
        try:
            self._store.write([record_of(record.attempt)])
            self._proved = asked
        except BaseException as cause:
            return cause
        return None

    def _end(self, ended: CommitEnded) -> None:
        self._now = None
        self._ended.append(ended)

    def _signal(self) -> None:
        """Tell the loop that something has ended; not where more follows at once, and it was told just before."""
        now = self._world.monotonic()
        with self._lock:
            follows = self._queue.committed + 1 in self._queue.waiting
            if follows and now - self._signalled < SIGNAL_SECS:
                return
            self._signalled = now
        self._on_end()
