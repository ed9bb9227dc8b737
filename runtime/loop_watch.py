"""Says where a topology's loop hangs, as in a coordinator of a spout that does not answer."""

from __future__ import annotations

import logging
import threading
import time

from stormline.runtime.thread_stack import stack_of
from stormline.runtime.topology_runner import TopologyRunner

LOOK_SECS = 5.0
HANGS_SECS = 30.0
"""How long a step may take before there is a warning; each further one comes when it has taken twice as long."""

log = logging.getLogger("stormline")


def watch_loop(name: str, runner: TopologyRunner, loop: threading.Thread) -> None:
    """Watch over a loop, which also calls coordinators, in a thread that ends with it."""
    threading.Thread(target=_watch, args=(name, runner, loop), daemon=True, name=f"stormline-{name}-watch").start()


def _watch(name: str, runner: TopologyRunner, loop: threading.Thread) -> None:
    step, patience_secs = None, HANGS_SECS
    while not runner.ended.wait(LOOK_SECS):
        if step != runner.step_begun:
            step, patience_secs = runner.step_begun, HANGS_SECS
        if step is not None and time.monotonic() - step >= patience_secs:
            patience_secs *= 2
            log.warning(
                "topology %r has waited for %.0f s in one call; until that returns, nothing begins but commits that "
                "were ready before. It is at\n%s",
                name,
                time.monotonic() - step,
                stack_of(loop),
            )
