"""Closing what a topology consists of: user code may hang there, and Spark waits for cores that it has lost."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from stormline.runtime.world.world import World

log = logging.getLogger("stormline")

CLOSE_SECS = 15.0
"""Time that all of it may take."""


def close_all(
    world: World, topology_id: str, closes: Iterable[Callable[[], None]], give_up: Callable[[], None]
) -> None:
    """Call each of `closes`, whatever the others raise; where that takes too long, `give_up` is called meanwhile."""
    closed = world.event()

    def watch() -> None:
        if not closed.wait(CLOSE_SECS):
            what = "closing the components of topology %s takes more than %g s; it is left to itself"
            log.warning(what, topology_id, CLOSE_SECS)
            give_up()

    world.start_thread(f"stormline-{topology_id}-closing", watch)
    for close in closes:
        try:
            close()
        except BaseException:  # whatever it is, the ownership is given up
            log.warning("ending topology %s", topology_id, exc_info=True)
    closed.set()
