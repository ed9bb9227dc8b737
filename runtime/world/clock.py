"""The time that passes while the machine sleeps too: a laptop that was closed, a virtual machine that was paused."""

from __future__ import annotations

import time

_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", None)  # Linux; its monotonic clock stands still meanwhile


def passed_secs() -> float:
    """Return the time since some moment in the past; on systems without such a clock that of `time.monotonic`."""
    return time.monotonic() if _BOOTTIME is None else time.clock_gettime(_BOOTTIME)
