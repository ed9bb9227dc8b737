"""Whether Spark's JVM still answers, and its end where it does not: calls to it have no time-out of their own."""

from __future__ import annotations

import contextlib
import logging
import threading
from typing import Any

log = logging.getLogger("stormline")

ANSWERS_SECS = 10.0
"""Time that a JVM has for the shortest answer: one that collects garbage for longer is of no use either."""

DIES_SECS = 5.0


def answers(gateway: Any, secs: float = ANSWERS_SECS) -> bool:
    """Return whether the JVM behind py4j's `gateway` lives and answers, or is known to have ended."""
    answered = threading.Event()

    def ask() -> None:
        with contextlib.suppress(Exception):  # its end is an answer, too: no later call would wait for one
            gateway.jvm.System.currentTimeMillis()
        answered.set()

    threading.Thread(target=ask, daemon=True, name="stormline-jvm-asked").start()
    return answered.wait(secs)


def end_if_hung(gateway: Any, secs: float = ANSWERS_SECS) -> bool:
    """Kill the JVM if it hangs and this process has started it; return whether it can be talked to, or has ended.

    Whatever waits for its answer then gets an error, and what it held is free: ports, memory, the state directory.
    """
    if gateway is None or answers(gateway, secs):
        return True
    process = getattr(gateway, "proc", None)
    if process is None:
        log.error(
            "Spark's JVM has not answered for %g s: it hangs, and is left to whoever started it; until it is ended it "
            "holds what it held, such as the state directory of an embedded ZooKeeper",
            secs,
        )
        return False
    process.kill()
    with contextlib.suppress(Exception):  # it is being killed
        process.wait(DIES_SECS)
    log.error(
        "Spark's JVM (process %d) has not answered for %g s: it hung, and was killed so that this run can end and "
        "another one begin; what is committed stays committed",
        process.pid,
        secs,
    )
    return True
