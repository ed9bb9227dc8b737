"""StateFiles: whether the files that an embedded ZooKeeper writes to are still where the next run will look for them.

A server goes on writing to files that were deleted, and acknowledges what is on no disk any more.
"""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path

from stormline.runtime.errors import StateDirGone

FILE = re.compile(r"(log|snapshot)\.([0-9a-f]+)")


class StateFiles:
    """The directory `files` of a server that has just started, and the log that it writes to."""

    def __init__(self, data_dir: Path, files: Path) -> None:
        self._data_dir = data_dir
        self._files = files
        self._lock = threading.Lock()
        self._directory = _identity(files)
        self._log: tuple[Path, object] | None = None

    def gone(self) -> StateDirGone | None:
        """Return the error for files that were deleted, moved away or replaced; None while all are there.

        What was acknowledged before is on the disk then, unless a new log was begun and deleted since the last call.
        """
        with self._lock:
            return self._gone()

    def _gone(self) -> StateDirGone | None:
        if self._log is not None and _identity(self._log[0]) == self._log[1]:
            return None  # found where it was, so its directory is, too: one look for each write
        if _identity(self._files) != self._directory:
            return self._error(self._files)
        if self._log is None or _identity(self._log[0]) != self._log[1]:
            before, self._log = self._log, self._newest_log()
            # A log goes once there are later ones.
            if before is not None and (self._log is None or zxid(self._log[0].name) <= zxid(before[0].name)):
                self._log = before
                return self._error(before[0])
        return None

    def look(self) -> StateDirGone | None:
        """As `gone`, and record which log is written to now: from time to time there is a new one."""
        with self._lock:
            gone = self._gone()
            if gone is None:
                self._log = self._newest_log()
            return gone

    def _newest_log(self) -> tuple[Path, object] | None:
        try:
            logs = [path for path in self._files.iterdir() if FILE.fullmatch(path.name) and path.name.startswith("log")]
        except OSError:
            return None
        newest = max(logs, key=lambda path: zxid(path.name), default=None)
        return None if newest is None else (newest, _identity(newest))

    def _error(self, path: Path) -> StateDirGone:
        return StateDirGone(
            f"state directory {self._data_dir} was deleted, moved or replaced while its topologies ran ({path} is not "
            "what it was): nothing that is stored from now on would be there for the next run, so they stop. Put a "
            "copy of the directory in its place; without one the next run begins at transaction 1, and what the "
            "topologies have stored elsewhere has to be removed before, too"
        )


def zxid(name: str) -> int:
    """Return the number in the name of one of ZooKeeper's files."""
    return int(name.rpartition(".")[2], 16)


def _identity(path: Path) -> object:
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_dev, stat.st_ino
