"""Backoff: how long to wait after failures, and when there have been too many in a row."""

from __future__ import annotations

from stormline.runtime.errors import EngineStopped
from stormline.runtime.messages.engine import EngineFailure
from stormline.runtime.messages.wave import Failure
from stormline.topology.attempt import TransactionAttempt

ENGINE_FAILURES_MAX = 8
"""Waves in a row that may come to nothing before the topology stops."""

ENGINE_WAIT_SECS = 0.1
"""Time before the next wave after one that came to nothing, doubled for each in a row up to 5 s."""

UNCOUNTED_FAILURES_MAX = 20
"""Failures in a row that are no batch's own fault, beside one for each component, before the topology stops."""

REPLAYS_AT_ONCE = 3
"""Failures of one batch after which its replays begin to wait, up to a second."""


class Backoff:
    """Counts failures that are no batch's own. Each call that tells of a failure returns the seconds to wait for.

    Args:
        components: of the topology; each may learn once, by a failure, that its bolt's state cannot travel.
    """

    def __init__(self, topology_id: str, components: int) -> None:
        self._topology_id = topology_id
        self._components = components
        self._waves = 0
        self._uncounted = 0

    def wave_processed(self) -> None:
        """Record that a wave gave results."""
        self._waves = 0

    def committed(self) -> None:
        """Record that a transaction has committed."""
        self._uncounted = 0

    def batch_failed(self, failures: int) -> float:
        """Record a failure of one batch, the last of `failures`."""
        more = failures - REPLAYS_AT_ONCE
        return min(1.0, 0.01 * 2.0 ** min(more, 10)) if more > 0 else 0.0

    def uncounted(self, attempt: TransactionAttempt, failure: Failure) -> float:
        """Record a failure that is not the batch's own, such as input that was cut.

        Raises:
            EngineStopped: there have been too many since the last commit.
        """
        self._uncounted += 1
        if self._uncounted > UNCOUNTED_FAILURES_MAX + self._components:
            raise EngineStopped(
                f"topology {self._topology_id!r} stopped: transaction {attempt} failed {self._uncounted} times in a "
                f"row through no fault of its own, the last time: {failure.message}; nothing durable is lost"
            )
        return 0.2 if self._uncounted > REPLAYS_AT_ONCE + self._components else 0.0

    def wave_failed(self, title: str, failure: EngineFailure) -> float:
        """Record that a wave came to nothing.

        Raises:
            EngineStopped: the reason lasts, or too many waves in a row came to nothing.
        """
        self._waves += 1
        if failure.lasting or self._waves >= ENGINE_FAILURES_MAX:
            raise EngineStopped(
                f"topology {self._topology_id!r} stopped: {title} came to nothing, {self._waves} time(s) in a row: "
                f"{failure}; nothing durable is lost"
            ) from failure
        return min(5.0, ENGINE_WAIT_SECS * 2.0**self._waves)
