"""WaveSize: how many transactions the next wave may hold."""

from __future__ import annotations

WAVE_SECS = 3.0
"""A wave that takes longer is too large: what Spark costs a job is then 3 % of it, and a replay costs all of it."""

CAREFUL_WAVES = 16
"""After a wave that came to nothing so many are processed before one is larger again: it may have been too large for
the executors' memory, or its result for the driver, and every second one would be."""

FIRST_ATTEMPTS = 64
"""Most attempts of a wave that begins while nothing waits for its commit: one of all that may be pending would leave
the committer without work for as long as it takes. Later ones may hold twice as many each time."""


class WaveSize:
    """At most topology.max.spout.pending; fewer where processing takes long, half after a wave that came to nothing.

    `attempts_max`: what executors and messages can take, as far as is known.
    """

    def __init__(self, pending_max: int) -> None:
        self._pending_max = pending_max
        self._careful_waves = 0
        self._ahead_max = FIRST_ATTEMPTS
        self.attempts_max = pending_max

    def begins(self, commits_wait: bool) -> int:
        """Return how many attempts a wave may hold that begins now, while commits wait or not."""
        self._ahead_max = min(self._pending_max, 2 * self._ahead_max) if commits_wait else FIRST_ATTEMPTS
        return min(self.attempts_max, self._ahead_max)

    def processed(self, attempts: int, secs: float) -> None:
        """Record a wave that has been processed."""
        if secs > WAVE_SECS:
            self.attempts_max = max(1, min(self.attempts_max, int(attempts * WAVE_SECS / secs)))
        elif self._careful_waves:
            self._careful_waves -= 1
        elif secs <= WAVE_SECS / 2:
            self.attempts_max = min(self._pending_max, self.attempts_max * 2)

    def failed(self, attempts: int) -> None:
        """Record a wave that came to nothing, or took too long."""
        self.attempts_max = max(1, attempts // 2)
        self._careful_waves = CAREFUL_WAVES

    def too_large(self, fitted: int) -> None:
        """Record a wave of which only the first `fitted` attempts found room in Spark's messages."""
        self.attempts_max = max(1, min(self.attempts_max, fitted))
        self._careful_waves = CAREFUL_WAVES

    def enough(self, room: int) -> bool:
        """Return whether a wave is worth its job where `room` transactions may be active beside those that wait for
        their commits: it costs as much for one as for many."""
        return room >= min(self.attempts_max, (self._pending_max + 1) // 2)
