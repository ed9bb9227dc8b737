"""ExecutingSecs: says once where bolts that execute at the commit take a good part of the time."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping

from stormline.runtime.world.world import World
from stormline.topology.plan import Plan

log = logging.getLogger("stormline")

SHARE_MAX = 0.1
SECS_MIN = 2.0
"""A run that has not yet spent as much on executing at the commit is too short to tell."""


class ExecutingSecs:
    """Counts what each bolt takes, since the first commit."""

    def __init__(self, world: World, plan: Plan) -> None:
        self._world = world
        self._plan = plan
        self._since: float | None = None
        self._secs: defaultdict[str, float] = defaultdict(float)
        self._told: set[str] = set()

    def add(self, secs: Mapping[str, float]) -> None:
        """Record what one commit took."""
        now = self._world.monotonic()
        if self._since is None:
            self._since = now - max(secs.values(), default=0.0)
        for bolt, taken in secs.items():
            self._secs[bolt] += taken
            tasks = len(self._plan.components[bolt].tasks)
            share = self._secs[bolt] / tasks / max(now - self._since, 1e-9)
            if bolt not in self._told and self._secs[bolt] >= SECS_MIN and share > SHARE_MAX:
                self._told.add(bolt)
                log.warning(
                    "topology %s: bolt %r (%s) executes its tuples in the driver, at the commit: %.0f %% of the time "
                    "so far. If all that execute() changes is plain data in attributes, say so in the class, as "
                    "gathers = ('counts',): then it executes on the executors, in parallel",
                    self._plan.topology_id,
                    bolt,
                    type(self._plan.components[bolt].component.obj).__name__,
                    100 * share,
                )
