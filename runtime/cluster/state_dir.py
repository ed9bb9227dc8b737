"""The state directory: where it is, and whether another process serves it, asked before Spark is started."""

from __future__ import annotations

import logging
import os
import stat
import struct
import sys
import time
from pathlib import Path

from stormline.runtime.errors import StateDirInUse
from stormline.runtime.world.disk_room import check_room

log = logging.getLogger("stormline")

WAIT_SECS = 5.0
_ONLY_OURS = 0o700
_FLOCK = "hhqqi"
"""What Linux says of a lock: its kind, whence, start and length, and the process that holds it."""

STATE_ROOT = Path(".stormline")
"""In the current directory: below it each topology keeps its state where nothing else is said."""


def check_state_room(data_dir: Path) -> None:
    """Raise `DiskFull` where an embedded ZooKeeper has no room for its data."""
    check_room(
        data_dir,
        "the state (the embedded ZooKeeper's data)",
        "name a state directory on another disk (--state-dir DIR, LocalCluster(state_dir=…))",
    )


def default_state_dir(topology_id: str) -> Path:
    """Return where a topology that was given neither ZooKeeper servers nor a directory keeps its state."""
    return STATE_ROOT / topology_id


def keep_to_user(data_dir: Path) -> None:
    """Make the directory and its lock file, if need be, and keep them from other users.

    Whoever may read a file may lock it, and so keep others from starting; and in a directory that others may write to,
    the lock could be replaced by another file.

    Raises:
        StateDirInUse: the lock file is another user's.
    """
    data_dir.mkdir(mode=_ONLY_OURS, parents=True, exist_ok=True)
    lock = data_dir / "lock"
    try:
        os.close(os.open(lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600))
    except PermissionError as error:
        raise StateDirInUse(
            f"state directory {data_dir} is in use by {_owner(data_dir)}: {lock} cannot be opened "
            f"({error.strerror}); give this run its own"
        ) from None
    for path in (data_dir, lock):
        found = path.stat()
        if stat.S_IMODE(found.st_mode) & ~_ONLY_OURS and hasattr(os, "geteuid") and found.st_uid == os.geteuid():
            path.chmod(stat.S_IMODE(found.st_mode) & _ONLY_OURS)


def used_by(data_dir: Path) -> str:
    """Say which process holds the lock of an embedded ZooKeeper's directory; empty: none, or one of this process."""
    try:
        import fcntl
    except ImportError:  # not a POSIX system: the lock itself tells, later
        return ""
    try:
        handle = os.open(data_dir / "lock", os.O_RDWR)
    except OSError:
        return ""
    try:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, 0, 0, 0, 0)
        pid = 0
        if sys.platform == "linux":
            *_, pid = struct.unpack(_FLOCK, fcntl.fcntl(handle, fcntl.F_GETLK, asked))
        return f"another process{_described(pid)}"
    finally:
        os.close(handle)
    return ""


def _described(pid: int) -> str:
    """Say what is known of a process; nothing of one that lives where its id means something else."""
    if pid <= 0:
        return ""
    process = Path("/proc", str(pid))
    try:
        command = process.joinpath("cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        command = ""
    return f" ({pid}, of {_owner(process)}{f': {command[:80]!r}' if command else ''})"


def _owner(path: Path) -> str:
    try:
        uid = path.stat().st_uid
    except OSError:
        return "a user who cannot be seen"
    try:
        import pwd

        return f"user {pwd.getpwuid(uid).pw_name!r}"
    except (ImportError, KeyError):
        return f"user {uid}"


def wait_until_free(data_dir: Path, wait_secs: float = WAIT_SECS) -> None:
    """Wait a little for the JVM of a killed driver to end.

    Raises:
        StateDirInUse: another process still serves the directory.
    """
    deadline = time.monotonic() + wait_secs
    while who := used_by(data_dir):
        if time.monotonic() > deadline:
            raise in_use(data_dir, who, wait_secs)
        time.sleep(0.05)


def in_use(data_dir: Path, who: str, waited_secs: float = 0.0) -> StateDirInUse:
    """Return the error for a directory that `who` serves."""
    waited = f", and was still after {waited_secs:g} s" if waited_secs else ""
    return StateDirInUse(
        f"state directory {data_dir} is in use by {who}{waited}; stop that run first, or give this one its own"
    )
