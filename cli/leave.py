"""Ends the process although threads may be inside of user code that never returns."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import NoReturn

PATIENCE_SECS = 1.0


class LeaveNow(Exception):
    """A run has to end the process at once, with this message: there is nothing to close, or nobody to wait for."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def leave(exit_code: int) -> NoReturn:
    """End the process without waiting for any thread. Spark's JVM ends with it."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(exit_code)


def leave_if_hung(exit_code: int) -> None:
    """End the process if Python would wait for ever at its end, for threads that a hung commit has left behind."""
    deadline = time.monotonic() + PATIENCE_SECS
    for thread in threading.enumerate():
        if not thread.daemon and thread not in (threading.main_thread(), threading.current_thread()):
            thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                leave(exit_code)
