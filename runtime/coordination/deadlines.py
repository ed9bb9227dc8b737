"""Deadlines: how long the loop may wait for a message, and which wave or commit has taken too long."""

from __future__ import annotations

from collections.abc import Callable

from stormline.runtime.coordination.committer import Committer
from stormline.runtime.coordination.wave_thread import WaveThread
from stormline.runtime.messages.engine import Engine
from stormline.runtime.messages.wave import Failure
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.runtime.world.running_calls import CallReport, told
from stormline.topology.attempt import TransactionAttempt

COMMITS_LOOK_SECS = 0.05
"""Time between two looks at commits that follow one another, where no signal comes because the next one takes long."""

_UNKNOWN_CALL = (
    "one of {} takes longer, or hangs: the standard error of the executors names the call that runs, and its line"
)


class Deadlines:
    """The times at which the loop must look at the wave and the commit that run.

    Args:
        timeout_secs: topology.message.timeout.secs; None: waves and commits may take as long as they will.
        holds_up: what the wave of an attempt waits for in the driver, before it begins.
    """

    def __init__(
        self,
        env: TaskEnvironment,
        engine: Engine,
        waves: WaveThread,
        committer: Committer,
        timeout_secs: float | None,
        holds_up: Callable[[TransactionAttempt], list[CallReport]],
    ) -> None:
        self._env = env
        self._world = env.world
        self._engine = engine
        self._waves = waves
        self._committer = committer
        self._timeout_secs = timeout_secs
        self._holds_up = holds_up

    def patience(self, wave_time: float | None) -> float | None:
        """Return the seconds that the loop may wait for a message, None where only a message can bring news.

        Args:
            wave_time: the monotonic time at which the next wave may need a look, if any.
        """
        times = [t for t in (self._waves.deadline(), self._committer.deadline(), wave_time) if t is not None]
        if self._committer.busy:
            times.append(self._world.monotonic() + COMMITS_LOOK_SECS)
        return max(0.0, min(times) - self._world.monotonic()) + 0.001 if times else None

    def overdue_commit(self) -> tuple[TransactionAttempt, Failure] | None:
        """Return, once, the attempt whose commit phase has passed its deadline, and what is said of it."""
        attempt = self._committer.overdue()
        if attempt is None:
            return None
        message = f"it did not finish within {self._timeout_secs:g} s (topology.message.timeout.secs)"
        return attempt, Failure("the commit phase", None, f"{message}; it is in {self._committer.overdue_in}")

    def overdue_wave(self) -> Failure | None:
        """Cancel the wave that runs where it has passed its deadline; return, once, what is said of it."""
        wave = self._waves.wave
        if wave is None or not self._waves.overdue():
            return None
        if self._waves.cancelled:
            self._waves.cancel()  # Spark may not have heard of it
            return None
        attempts = {each.attempt for each in wave.attempts}
        running = [*self._engine.calls(attempts), *self._env.calls.reports(attempts)]
        running += self._holds_up(wave.attempts[0].attempt)
        self._waves.cancel()
        components = [name for stage in self._env.plan.stages for name in stage.components]
        what = f"{wave.title} was not processed within {self._timeout_secs:g} s (topology.message.timeout.secs); "
        what += f"it is in {told(running)}" if running else _UNKNOWN_CALL.format(components)
        if self._env.emitters.running():
            what += "; the replay waits for the end of the emitter's call"
        component, task = running[0][:2] if running else (self._env.plan.spout.id, None)
        return Failure(component, task, what)
