"""SinkAges: warns of pre-committed transactions that grow old against their resource's own limit."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence

from stormline.runtime.messages.sink_handle import SinkHandle
from stormline.runtime.world.world import World
from stormline.topology.plan import Plan
from stormline.topology.two_phase_bolt import sink_of
from stormline.topology.two_phase_commit import PreparedTransaction

log = logging.getLogger("stormline")

WARN_RATIO = 0.5
"""Of the limit, from which on it is warned of; Flink's users set the same."""


class SinkAges:
    """The ages of what is pre-committed, as its resource lists them, or as this process has seen them be fixed."""

    def __init__(self, world: World, plan: Plan) -> None:
        self._world = world
        bolts = {name: sink_of(planned.component) for name, planned in plan.components.items()}
        self._limits = {name: bolt.sink.prepared_limit_secs for name, bolt in bolts.items() if bolt is not None}
        self._fixed_at: dict[str, float] = {}

    def fixed(self, handles: Iterable[SinkHandle]) -> None:
        """Record that these were pre-committed just now."""
        for handle in handles:
            if self._limits.get(handle.component) is not None:
                self._fixed_at[handle.label] = self._world.monotonic()

    def warn(self, component: str, listed: Sequence[PreparedTransaction] | None, kept: Collection[str]) -> None:
        """Warn of those of a component that are to be committed, `kept`, and have passed half of the limit."""
        limit_secs = self._limits.get(component)
        if limit_secs is None:
            return
        now = self._world.monotonic()
        ages = {label: now - at for label, at in self._fixed_at.items() if label in kept}
        self._fixed_at = {label: at for label, at in self._fixed_at.items() if label in kept}
        for prepared in listed or ():
            if prepared.age_secs is not None and prepared.label in kept:
                ages[prepared.label] = prepared.age_secs
        old = {label: age for label, age in ages.items() if age > WARN_RATIO * limit_secs}
        if old:
            label = max(old, key=old.__getitem__)
            log.warning(
                "%d transactions of bolt %r wait for their commit since up to %.0f s, the oldest is %s: after %g s the "
                "resource drops them, and their rows are lost. See why transactions are not committed, or raise its "
                "limit",
                len(old),
                component,
                old[label],
                label,
                limit_secs,
            )
