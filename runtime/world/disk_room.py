"""Whether a disk has room, asked before anything starts that would say so in a hundred lines, or not at all."""

from __future__ import annotations

import contextlib
import errno
import shutil
import tempfile
from pathlib import Path

from stormline.runtime.errors import DiskFull

ROOM_BYTES = 1 << 20
"""What must find room: neither ZooKeeper's first files nor Spark's are larger."""

_FULL = (errno.ENOSPC, errno.EDQUOT)


def check_room(directory: Path, what: str, remedy: str) -> None:
    """Check by writing that `directory`, or the nearest one above it that exists, has room for `what`.

    Raises:
        DiskFull: it has not. What else keeps anybody from writing there is told by who does.
    """
    there = next((path for path in (directory, *directory.parents) if path.is_dir()), directory)
    try:
        with tempfile.TemporaryFile(dir=there, buffering=0) as file:
            left = ROOM_BYTES
            while left:
                left -= file.write(b"\0" * left)  # a disk that is nearly full takes a part
    except OSError as error:
        if error.errno in _FULL:
            raise _full(there, what, remedy, error) from None


def _full(directory: Path, what: str, remedy: str, error: OSError) -> DiskFull:
    """Return the error for a disk that took no more."""
    free = ""
    with contextlib.suppress(OSError):
        usage = shutil.disk_usage(directory)
        free = f", {usage.free:,} of {usage.total:,} bytes are free"
    return DiskFull(
        f"{what} cannot be written to {directory} ({error.strerror}{free}), and {ROOM_BYTES:,} are needed: free "
        f"some, or {remedy}. Nothing was changed"
    )
