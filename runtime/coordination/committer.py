"""Committer: runs commit phases in a thread of its own, one after another, and records each before the next begins."""

from __future__ import annotations

import logging
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from stormline.runtime.commit.commit_phase import CommitPhase
from stormline.runtime.coordination.batch_store import record_of
from stormline.runtime.messages.engine import CommitEngine
from stormline.runtime.messages.wave import AttemptResult, Failure
from stormline.runtime.state.state_store import StateStore
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.readings import Readings

log = logging.getLogger("stormline")

LOOK_SECS = 0.02
"""Time between two looks at a connection that is suspended."""

PROOF_SECS = 0.5
"""Age from which the last confirmed write no longer shows that this driver owns the topology."""

PROOF_TRIES = 3
"""How often ZooKeeper is asked for a proof that is not too old when it comes: the driver may have slept meanwhile.
Where it is never younger ZooKeeper is that slow."""

SIGNAL_SECS = 0.005
"""Time between two signals that commits have ended, while more of them follow: waking the loop for each would take
longer than a small commit."""


@dataclass(frozen=True, slots=True)
class CommitEnded:
    """A commit has come to its end.

    It is recorded where there is neither a `failure` of the commit phase nor an `error`: why nothing more can be
    committed by this driver. `executing_secs`: see `CommitPhase.executing_secs`.
    """

    attempt: TransactionAttempt
    failure: Failure | None = None
    error: BaseException | None = None
    executing_secs: Mapping[str, float] = field(default_factory=dict)
    metrics: Readings = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class _Commit:
    """The commit phase that runs. Who sets one of these under the lock decides: it is recorded, or its time is up."""

    run: CommitPhase
    begun: float
    recording: bool = False
    timed_out: bool = False
    told_at: float = 0.0


class Committer:
    """Commits what it is given, in txid order: no commit begins before the one before is recorded (law 1, order), while
    the connection is suspended, or later than `PROOF_SECS` after the last proof of the ownership was asked for.

    A commit that outlives its deadline begins no further call of user code, and is not recorded; but the one that runs
    keeps its place until it comes back, so that its effects end before the next attempt's begin, as in Storm.

    Args:
        committed: the last transaction that is recorded.
        begun: the last transaction of which a commit effect may have happened.
        on_end: called from the committer's thread when there is something for `take_ended`; within `SIGNAL_SECS`, or
            the time of the next commit if that is longer.
    """

    def __init__(
        self,
        env: TaskEnvironment,
        engine: CommitEngine,
        store: StateStore,
        committed: int,
        begun: int,
        on_end: Callable[[], None],
        timeout_secs: float | None,
    ) -> None:
        self._env = env
        self._world = env.world
        self._engine = engine
        self._store = store
        self._on_end = on_end
        self._timeout_secs = timeout_secs
        self._lock = env.world.condition()
        self._committed = committed
        self._begun = begun
        self._todo: deque[AttemptResult] = deque()
        self._now: _Commit | None = None
        self._ended: list[CommitEnded] = []
        self._signalled = 0.0
        self._proved = 0.0
        self._stopping = False
        self._closed = False
        self.overdue_in = ""
        """Where the commit was, when `overdue` last returned its attempt."""
        name = f"stormline-commit-{self._env.plan.topology_id}"
        self.thread = env.world.start_thread(name, self._work)

    # ------------------------------------------------------------------------------------ from the topology's loop

    @property
    def busy(self) -> bool:
        """Whether a commit runs or waits, or has ended and was not taken."""
        with self._lock:
            return bool(self._now is not None or self._todo or self._ended)

    @property
    def runs(self) -> bool:
        """Whether a commit runs."""
        with self._lock:
            return self._now is not None

    @property
    def timed_out(self) -> bool:
        """Whether the commit that runs has passed its deadline: it is not recorded, whenever it ends."""
        with self._lock:
            return self._now is not None and self._now.timed_out

    def add(self, result: AttemptResult) -> None:
        """Commit a processed attempt when its turn comes, unless it is time to stop."""
        txid = result.attempt.transaction_id
        with self._lock:
            if self._stopping:
                return
            assert not self._todo or txid == self._todo[-1].attempt.transaction_id + 1, (txid, self._todo)
            self._todo.append(result)
            self._lock.notify_all()

    def revoke(self, txid: int = 0) -> None:
        """Take back the commits from `txid` on that have not begun."""
        with self._lock:
            self._todo = deque(result for result in self._todo if result.attempt.transaction_id < txid)

    def stop(self) -> None:
        """Begin no further commit. May be called from any thread."""
        with self._lock:
            self._stopping = True
            self._todo.clear()

    def txid_begun(self) -> int:
        """Return the last transaction of which a commit effect may have happened."""
        with self._lock:
            return self._begun

    def take_ended(self) -> list[CommitEnded]:
        """Return the commits that have come to their ends since the last call, in order."""
        with self._lock:
            ended, self._ended = self._ended, []
            return ended

    def overdue(self) -> TransactionAttempt | None:
        """Return, once, the attempt whose commit phase has passed its deadline; it can be recorded no more."""
        with self._lock:
            commit = self._now
            if commit is None or self._timeout_secs is None or commit.timed_out or commit.recording:
                return None
            if self._world.monotonic() - commit.begun < self._timeout_secs:
                return None
            commit.told_at = 0.0
            commit.timed_out = True
        self.overdue_in = commit.run.where()
        commit.run.abandon()
        return commit.run.attempt

    def tell_if_hung(self) -> None:
        """Say, again and again, where a commit stands that runs on after its deadline: all that follows waits."""
        with self._lock:
            commit = self._now
            if commit is None or not commit.timed_out or self._timeout_secs is None:
                return
            now = self._world.monotonic()
            if now - commit.told_at < self._timeout_secs:
                return
            commit.told_at = now
        log.warning(
            "the commit of %s has run for %.0f s, longer than topology.message.timeout.secs. Its replay, and all later "
            "transactions, wait for its end: what it still does must not come after theirs. It is in %s",
            commit.run.attempt,
            now - commit.begun,
            commit.run.where(),
        )

    def deadline(self) -> float | None:
        """Return the monotonic time at which the commit phase that runs needs a look, if any."""
        with self._lock:
            if self._now is None or self._now.recording or self._timeout_secs is None:
                return None
            return (self._now.told_at if self._now.timed_out else self._now.begun) + self._timeout_secs

    def close(self) -> None:
        """Let the thread end; a commit that still runs can emit nothing more, and is not recorded."""
        with self._lock:
            self._closed = True
            self._todo.clear()
            commit = self._now
            if commit is not None and not commit.recording:
                commit.timed_out = True
            self._lock.notify_all()
        if commit is not None:
            commit.run.abandon()

    # ------------------------------------------------------------------------------------ in its thread

    def _work(self) -> None:
        while (result := self._next()) is not None:
            if self._may_begin(result):
                commit = self._begin(result)
                if commit is not None and not self._finish(commit):
                    return

    def _next(self) -> AttemptResult | None:
        """Wait for the commit whose turn it is; None: the thread ends."""
        with self._lock:
            while not self._closed:
                if self._todo and self._todo[0].attempt.transaction_id == self._committed + 1:
                    return self._todo[0]
                self._lock.wait()
            return None

    def _may_begin(self, result: AttemptResult) -> bool:
        """Return whether the ownership is certain; ask ZooKeeper, unless it has confirmed a write lately: a driver that
        slept must not begin a commit."""
        if not self._store.connected():
            self._world.sleep(LOOK_SECS)
            return False
        for _ in range(PROOF_TRIES):
            now = self._world.passed_secs()
            if now - self._proved <= PROOF_SECS:
                break
            try:
                self._store.write([])
            except BaseException as error:
                self._end(CommitEnded(result.attempt, error=error))
                self.revoke()
                return False
            self._proved = now
        return True

    def _begin(self, result: AttemptResult) -> _Commit | None:
        """Begin a commit, unless it was taken back meanwhile, or its bolts cannot be made."""
        try:
            run = CommitPhase(self._env, result, self._engine)
        except BaseException as error:  # a user's copy method, say: the loop stops the topology with it
            self._end(CommitEnded(result.attempt, error=error))
            self.revoke()
            return None
        with self._lock:
            if self._closed or not self._todo or self._todo[0] is not result:
                return None
            self._todo.popleft()
            self._begun = result.attempt.transaction_id
            self._now = _Commit(run, self._world.monotonic())
            return self._now

    def _finish(self, commit: _Commit) -> bool:
        """Run a commit phase and record it; return whether this thread goes on."""
        failure = error = None
        try:
            failure = commit.run.run()
        except BaseException as cause:  # ours, not the user's: whatever it is, the topology must hear of it
            text = "".join(traceback.format_exception(cause))
            failure = Failure("the commit phase", None, repr(cause), traceback=text, fatal=True)
        attempt = commit.run.attempt
        with self._lock:
            if commit.timed_out:
                failure = failure or Failure("the commit phase", None, "it ended after its deadline", counts=False)
            commit.recording = failure is None
        if failure is None:
            begun = self._world.passed_secs()
            try:
                self._store.write([record_of(attempt)])
                self._proved = begun
            except BaseException as cause:  # the loop decides what follows
                error = cause
        with self._lock:
            self._now = None
            if failure is None and error is None:
                self._committed = attempt.transaction_id
        self._end(CommitEnded(attempt, failure, error, commit.run.executing_secs(), commit.run.metrics()))
        return error is None

    def _end(self, ended: CommitEnded) -> None:
        now = self._world.monotonic()
        with self._lock:
            self._ended.append(ended)
            more = bool(self._todo) and ended.failure is None and ended.error is None
            if more and now - self._signalled < SIGNAL_SECS:
                return
            self._signalled = now
        self._on_end()
