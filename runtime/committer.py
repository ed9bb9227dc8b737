"""Committer: runs the commit phase of one attempt at a time, in a thread of its own, with a deadline."""

from __future__ import annotations

import logging
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from stormline.runtime.commit_runner import CommitRun
from stormline.runtime.remote_commit import CommitEngine
from stormline.runtime.task_environment import TaskEnvironment
from stormline.runtime.wave import AttemptResult, Failure
from stormline.topology.attempt import TransactionAttempt

log = logging.getLogger("stormline")


@dataclass(frozen=True, slots=True)
class CommitEnded:
    """A commit phase has come to its end; nothing is recorded yet."""

    attempt: TransactionAttempt
    failure: Failure | None
    cannot_travel: tuple[str, str] | None


class Committer:
    """One commit at a time. A commit that outlives its deadline keeps its place for as long again, so that its
    effects end before the next attempt's begin; then it is abandoned: a thread cannot be killed.
    """

    def __init__(
        self,
        env: TaskEnvironment,
        engine: CommitEngine,
        on_end: Callable[[CommitEnded], None],
        timeout_secs: float | None,
    ) -> None:
        self._env = env
        self._engine = engine
        self._on_end = on_end
        self._timeout_secs = timeout_secs
        self._new_thread()
        self._run: CommitRun | None = None
        self._begun = 0.0
        self._timed_out = False

    def _new_thread(self) -> None:
        self._todo: queue.SimpleQueue[CommitRun | None] = queue.SimpleQueue()
        todo, name = self._todo, f"stormline-commit-{self._env.plan.topology_id}"
        self._thread = threading.Thread(target=self._work, args=(todo,), daemon=True, name=name)
        self._thread.start()

    @property
    def busy(self) -> bool:
        """Whether a commit phase runs."""
        return self._run is not None

    def start(self, result: AttemptResult) -> None:
        """Begin a commit phase; `on_end` is called from its thread."""
        assert not self.busy
        run = CommitRun(self._env, result, self._engine)
        self._run, self._begun, self._timed_out = run, time.monotonic(), False
        self._todo.put(run)

    def _work(self, todo: queue.SimpleQueue[CommitRun | None]) -> None:
        while (run := todo.get()) is not None:
            try:
                failure = run.run()
            except BaseException as error:  # ours, not the user's: whatever it is, the topology must hear of it
                text = "".join(traceback.format_exception(error))
                failure = Failure("the commit phase", None, repr(error), traceback=text, fatal=True)
            self._on_end(CommitEnded(run.attempt, failure, run.cannot_travel))

    def ended(self, attempt: TransactionAttempt) -> None:
        """Take note that a commit phase has come to its end."""
        if self._run is not None and self._run.attempt == attempt:
            self._run = None

    def overdue(self) -> TransactionAttempt | None:
        """Return, once, the attempt whose commit has passed its deadline."""
        if self._run is None or self._timeout_secs is None or self._timed_out:
            return None
        if time.monotonic() - self._begun < self._timeout_secs:
            return None
        self._timed_out = True
        self._run.abandon()
        return self._run.attempt

    def abandon_if_hung(self) -> None:
        """Give up waiting for a commit that has had its deadline twice."""
        if self._run is None or not self._timed_out or self._timeout_secs is None:
            return
        if time.monotonic() - self._begun >= 2 * self._timeout_secs:
            frames = sys._current_frames().get(self._thread.ident or 0)
            where = "".join(traceback.format_stack(frames)[-3:]) if frames else ""
            log.warning("the commit of %s hangs and is abandoned; its thread goes on at\n%s", self._run.attempt, where)
            self._todo.put(None)
            self._run = None
            self._new_thread()

    def deadline(self) -> float | None:
        """Return the monotonic time at which this commit needs a look, if any."""
        if self._run is None or self._timeout_secs is None:
            return None
        return self._begun + self._timeout_secs * (2 if self._timed_out else 1)

    def close(self) -> None:
        """Let the thread end; a commit that still runs can emit nothing more."""
        if self._run is not None:
            self._run.abandon()
        self._todo.put(None)
