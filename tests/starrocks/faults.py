"""Faults as data: requests that do not arrive, replies that get lost, work that takes long, errors of the server's."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Literal

When = Literal["before", "after"]


@dataclass
class Fault:
    """What goes wrong with the next requests of one operation; before the effect, or after it.

    Args:
        operation: `begin`, `load`, `prepare`, `commit`, `rollback`, `get_load_state`, `cancel`, `show_proc`, or
            `redirect`: of any of them that the front end sends on.
        when: "before": it has no effect; "after": it has.
        times: how often.
        skip: how many requests go well before.
        status: the answer, in place of none: the connection is closed.
        message: of the answer.
        hold: the request, at this point, waits until this is set, and then goes on.
    """

    operation: str
    when: When = "after"
    times: int = 1
    skip: int = 0
    status: str = ""
    message: str = ""
    hold: threading.Event | None = None
    reached: threading.Event = field(default_factory=threading.Event)


class Faults:
    """The faults that are still to come."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._lock = threading.Lock()

    def add(self, fault: Fault) -> Fault:
        """Let one come; return it."""
        with self._lock:
            self._faults.append(fault)
        return fault

    def take(self, operation: str, when: When) -> Fault | None:
        """Return the fault that comes now, once less from now on."""
        with self._lock:
            for fault in self._faults:
                if (fault.operation, fault.when) == (operation, when) and fault.times > 0:
                    if fault.skip > 0:
                        fault.skip -= 1
                        continue
                    fault.times -= 1
                    fault.reached.set()
                    return fault
        return None

    def clear(self) -> None:
        """Let no more come."""
        with self._lock:
            self._faults.clear()
