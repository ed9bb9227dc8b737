"""Appointments: the harness lays a file, and the process that comes to that point first takes it and gets a signal.

SIGKILL ends it right there; SIGSTOP freezes it right there, in the middle of a commit: a zombie when it wakes up.
"""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import psutil

EXECUTING = "executing"
BEFORE = "before-commit"
WITHIN = "within-commit"
AFTER = "after-commit"
AT_COMMIT = (BEFORE, WITHIN, AFTER)
"""Of two-phase sinks: all is decided, and nothing committed; between two commits of a batch; after the second one."""

PREPARING = "before-prepare"
PREPARED = "after-prepare"


class Appointment:
    """One appointment, as the harness sees it."""

    def __init__(self, folder: Path, point: str, number: signal.Signals) -> None:
        self._number = number
        self._path = folder / f"meet-{point}"
        self._met = folder / f"met-{point}"
        self._met.unlink(missing_ok=True)
        new = folder / f"new-{point}"
        new.write_text(str(int(number)))
        os.replace(new, self._path)

    def kept_by(self) -> int:
        """Return the process that has kept it; 0: none yet, or it is about to be stopped."""
        try:
            pid = int(self._met.read_text())
            stops = self._number == signal.SIGSTOP and psutil.Process(pid).status() != psutil.STATUS_STOPPED
        except (FileNotFoundError, ValueError):
            return 0
        except psutil.NoSuchProcess:
            return pid
        return 0 if stops else pid

    def cancel(self) -> None:
        """Let nobody keep it any more."""
        self._path.unlink(missing_ok=True)


def meet(folder: Path, point: str) -> None:
    """Keep the appointment, if there is one here; each is kept once."""
    path = folder / f"meet-{point}"
    if not path.exists():
        return
    mine = folder / f"mine-{point}-{os.getpid()}"
    try:
        os.rename(path, mine)
    except FileNotFoundError:
        return  # somebody else's
    number = int(mine.read_text())
    mine.write_text(str(os.getpid()))
    os.rename(mine, folder / f"met-{point}")
    # To this thread: of a signal to the process, another thread may hear first, and this one would go on until then.
    signal.pthread_kill(threading.get_ident(), number)
