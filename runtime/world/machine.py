"""Machine: where a process runs, and what can be known there of others."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from stormline.runtime.world.driver_mark import leave_mark, marked, remove_mark, taken

PROC = Path("/proc")


class Machine:
    """The machine that this process runs on; the simulation's is one of its own."""

    def host(self) -> str:
        """Return its name."""
        return socket.gethostname()

    def pid(self) -> int:
        """Return the id of this process."""
        return os.getpid()

    def boot(self) -> str:
        """Identify this boot of this kernel and what process ids mean here; empty where that cannot be known."""
        try:
            if os.readlink("/proc/self") != str(os.getpid()):
                return ""
            boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
            return f"{boot} {os.readlink('/proc/self/ns/pid')}"
        except OSError:
            return ""

    def started(self, pid: int) -> str | None:
        """Return when process `pid` started, in ticks since boot; empty if there is none, or only its corpse.

        None: it cannot be known. A process of another user is hidden where /proc is mounted with `hidepid`, as if there
        were none; the kernel still says that the id is taken.
        """
        try:
            stat = (PROC / str(pid) / "stat").read_text("utf-8", "replace")
            state, *fields = stat.rpartition(")")[2].split()
            if state in "ZX" and len(os.listdir(PROC / str(pid) / "task")) < 2:
                return ""
            return fields[18]
        except (OSError, IndexError):
            return None if taken(pid) else ""

    def leave_mark(self, token: str) -> None:
        """Leave the mark of the driver of this token, if that can be done."""
        leave_mark(token)

    def remove_mark(self, token: str) -> None:
        """Remove the mark of a driver that has ended in order."""
        remove_mark(token)

    def marked(self, token: str) -> bool:
        """Return whether the driver of this token ran here, as this user."""
        return marked(token)
