"""WaveThread: runs one wave at a time on an engine, in a thread of its own, with a deadline."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from stormline.runtime.messages.engine import Engine, EngineFailure
from stormline.runtime.messages.wave import Wave, WaveResult
from stormline.runtime.world.world import Queue, Thread, World

log = logging.getLogger("stormline")

CANCEL_AGAIN_SECS = 1.0
"""Time after which a wave that still runs is cancelled again: Spark does not hear of it before the job has begun."""

CANCEL_SECS = 2.0
"""Time that the loop waits for a cancel to return: a call to a JVM that hangs never does."""

FINISH_SECS = 1.0
"""How long the last wave may run on before it is cancelled: that kills Python workers, whose components could not clean
up then, and makes Spark print their broken pipes."""


@dataclass(frozen=True, slots=True)
class WaveEnded:
    """A wave has come to its end: with a result, or with the reason why there is none."""

    wave: Wave
    result: WaveResult | None
    failure: EngineFailure | None = None
    secs: float = 0.0


class WaveThread:
    """One wave at a time. One thread for all of them, since Spark ties a job's properties to its thread.

    Args:
        process: what processes a wave; None: the engine alone.
    """

    def __init__(
        self,
        world: World,
        engine: Engine,
        on_end: Callable[[WaveEnded], None],
        timeout_secs: float | None,
        process: Callable[[Wave], WaveResult] | None = None,
    ) -> None:
        self._world = world
        self._engine = engine
        self._process = process or engine.process
        self._on_end = on_end
        self._timeout_secs = timeout_secs
        self._todo: Queue[Wave | None] = world.queue()
        self._begun = 0.0
        self._cancelled_at: float | None = None
        self._cancelling: Thread | None = None
        self.wave: Wave | None = None
        self.thread = world.start_thread("stormline-waves", self._work)

    @property
    def busy(self) -> bool:
        """Whether a wave is being processed."""
        return self.wave is not None

    def start(self, wave: Wave) -> None:
        """Begin a wave; `on_end` is called from its thread."""
        assert not self.busy
        self.wave, self._begun, self._cancelled_at = wave, self._world.monotonic(), None
        self._todo.put(wave)

    def _work(self) -> None:
        while (wave := self._todo.get()) is not None:
            begun = self._world.monotonic()
            try:
                ended = WaveEnded(wave, self._process(wave), secs=self._world.monotonic() - begun)
            except EngineFailure as error:
                ended = WaveEnded(wave, None, error)
            except BaseException as error:  # ours, not the user's: whatever it is, the topology must hear of it
                ended = WaveEnded(wave, None, EngineFailure("".join(traceback.format_exception(error)), lasting=True))
            self._on_end(ended)

    def ended(self) -> None:
        """Record that the wave has come to its end."""
        self.wave = None

    def overdue(self) -> bool:
        """Tell that the wave has passed its deadline, or still runs a while after it was cancelled."""
        deadline = self.deadline()
        return deadline is not None and self._world.monotonic() >= deadline

    def deadline(self) -> float | None:
        """Return the monotonic time at which this wave needs a look, if any."""
        if self.wave is None:
            return None
        if self._cancelled_at is not None:
            return self._cancelled_at + CANCEL_AGAIN_SECS
        return None if self._timeout_secs is None else self._begun + self._timeout_secs

    @property
    def cancelled(self) -> bool:
        """Whether the wave that runs has been cancelled."""
        return self._cancelled_at is not None

    def cancel(self) -> None:
        """Make the wave end soon; its result is of no use any more. Returns in time also where Spark hangs."""
        if self.wave is None:
            return
        self._cancelled_at = self._world.monotonic()
        if self.hangs:
            return
        self._cancelling = self._world.start_thread("stormline-cancel", self._cancel, self.wave.title)
        self._cancelling.join(CANCEL_SECS)
        if self.hangs:
            log.warning(
                "cancelling %s has not returned for %g s: Spark hangs. The topology can be stopped; unless Spark comes "
                "back no wave ends",
                self.wave.title,
                CANCEL_SECS,
            )

    @property
    def hangs(self) -> bool:
        """Whether Spark has not yet answered to a cancel."""
        return self._cancelling is not None and self._cancelling.is_alive()

    def _cancel(self, title: str) -> None:
        try:
            self._engine.cancel()
        except Exception:
            log.warning("cancelling %s", title, exc_info=True)

    def close(self, wait_secs: float) -> None:
        """Let the thread end, with the wave that runs or, after a while, without it."""
        self._todo.put(None)
        self.thread.join(FINISH_SECS)
        if self.thread.is_alive():
            self.cancel()
            self.thread.join(0 if self.hangs else wait_secs)
