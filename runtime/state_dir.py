"""Whether another process serves a state directory: asked before Spark is started, which takes seconds."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path

from stormline.runtime.disk_room import check_room
from stormline.runtime.errors import StateDirInUse

log = logging.getLogger("stormline")

WAIT_SECS = 5.0


def check_state_room(data_dir: Path) -> None:
    """Raise `DiskFull` where an embedded ZooKeeper has no room for its data."""
    check_room(
        data_dir,
        "the state (the embedded ZooKeeper's data)",
        "name a state directory on another disk (--state-dir DIR, LocalCluster(state_dir=…))",
    )


def in_use(data_dir: Path) -> bool:
    """Tell whether a JVM holds the lock of an embedded ZooKeeper's directory; never true for one of this process."""
    try:
        import fcntl
    except ImportError:  # not a POSIX system: the lock itself tells, later
        return False
    try:
        handle = os.open(data_dir / "lock", os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def wait_until_free(data_dir: Path, wait_secs: float = WAIT_SECS) -> None:
    """Wait a little for the JVM of a killed driver to end.

    Raises:
        StateDirInUse: another process still serves the directory.
    """
    deadline = time.monotonic() + wait_secs
    while in_use(data_dir):
        if time.monotonic() > deadline:
            raise StateDirInUse(
                f"state directory {data_dir} is in use by another process, and was still after {wait_secs:g} s; "
                "stop that run first, or give this one its own"
            )
        time.sleep(0.05)
