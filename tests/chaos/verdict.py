"""Whether a driver may end as it did. What is not known to follow from a fault is a violation."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Set
from typing import Any

EXPECTED = {
    "": "it was told to stop",
    "SIGKILL": "it was killed",
    "SessionLost": "its session ended",
    "Fenced": "another driver took over",
    "AlreadyRunning": "the driver before it still lived",
    "ZooKeeperUnreachable": "ZooKeeper was down",
    "EngineStopped": "Spark lost all it had, time after time",
    "SparkUnavailable": "Spark was down",
}
"""How a driver may end when faults are about: by the error it ends with."""


def explain(end: Mapping[str, Any], poisoned: Set[int], heal: Callable[[int], None]) -> str | None:
    """Return why this end is a violation, or None. Poison that stopped a topology is taken away by `heal`."""
    error, cause, message = end["error"], end["cause"], end["message"]
    if error in EXPECTED:
        return None
    if error == "TopologyFailed" and cause == "Poisoned":
        found = re.search(r"the number (\d+) is poisoned", message)
        if found and int(found[1]) in poisoned:
            heal(int(found[1]))
            return None
    if error == "TopologyFailed" and cause == "Refused":
        found = re.search(r"comes with \((\d+), \d+, \d+\), after \((\d+), ", message)
        if found and int(found[1]) < int(found[2]):
            return None  # a zombie, turned away
    if error == "TopologyFailed" and cause == "StoreMismatch":
        found = re.search(r"stored by epoch (\d+), .* of epoch (\d+), .*: another driver has taken over", message)
        if found and int(found[2]) < int(found[1]):
            return None  # a zombie, turned away by a store's fence
    return f"{error} ({cause}): {message[-1500:]}"
