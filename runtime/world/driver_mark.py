"""Marks: what a driver leaves on the machine that it runs on, to be recognized there when it is dead.

Machines that were cloned while they ran, or resumed from one snapshot, have the same boot id, host name and process
ids: on a clone, a driver that lives on another one looks as if it had died. So only who finds the driver's mark, a file
named after its random token, may call it dead. (A driver that was itself cloned, together with its mark, shares its
session, too: of two such the first to write goes on, and the other is fenced.)
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from pathlib import Path

KEPT_SECS = 3600.0
"""For so long a dead driver's mark is kept: its session has ended by then."""


def leave_mark(token: str) -> None:
    """Leave this driver's mark; without one, where it cannot be left, nobody will know when it is dead."""
    with contextlib.suppress(OSError, ValueError):
        marks = _marks()
        marks.mkdir(mode=0o700, exist_ok=True)
        if _ours(marks):
            (marks / token).write_text(str(os.getpid()), "ascii")
            for old in marks.iterdir():
                if time.time() - old.stat().st_mtime > KEPT_SECS and not taken(int(old.read_text("ascii"))):
                    old.unlink(missing_ok=True)


def remove_mark(token: str) -> None:
    """Remove the mark of a driver that has ended in order, and the directory with the last one."""
    with contextlib.suppress(OSError):
        (_marks() / token).unlink(missing_ok=True)
        _marks().rmdir()


def taken(pid: int) -> bool:
    """Return whether there is a process of this id, whoever's."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it belongs to somebody else
        return True
    return True


def marked(token: str) -> bool:
    """Return whether the driver of this token ran here, as this user."""
    try:
        return _ours(_marks()) and token.isalnum() and (_marks() / token).is_file()
    except OSError:
        return False


def _marks() -> Path:
    return Path(tempfile.gettempdir(), f"stormline-drivers-{os.getuid() if hasattr(os, 'getuid') else 0}")


def _ours(marks: Path) -> bool:
    """Return whether nobody else can have put marks there."""
    found = marks.lstat()
    return not hasattr(os, "getuid") or (found.st_uid == os.getuid() and found.st_mode & 0o777 == 0o700)
