"""DriverIdentity: which process holds a topology, and whether it is provably alive or dead."""

from __future__ import annotations

import datetime as dt
import os
import socket
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from stormline.runtime.errors import AlreadyRunning
from stormline.runtime.state.driver_mark import marked, taken

PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class DriverIdentity:
    """A process that holds a topology; `machine` and `process`, where not empty, identify it for ever."""

    host: str
    pid: int
    since: str
    machine: str
    process: str
    session_timeout_ms: int
    token: str

    @classmethod
    def this_process(cls, session_timeout_ms: int, token: str) -> DriverIdentity:
        """Return the holder that this process would be."""
        pid = os.getpid()
        since = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        return cls(socket.gethostname(), pid, since, _machine(), _started(pid) or "", session_timeout_ms, token)

    def to_data(self) -> dict[str, Any]:
        """Return this as plain values."""
        return asdict(self)

    @classmethod
    def from_data(cls, data: Any) -> DriverIdentity:
        """Return the holder that `to_data` gave `data` for; raise `TypeError` where it did not."""
        holder = cls(**data)
        texts = (holder.host, holder.since, holder.machine, holder.process, holder.token)
        if not all(isinstance(text, str) for text in texts):
            raise TypeError("text expected")
        if not all(type(number) is int for number in (holder.pid, holder.session_timeout_ms)):
            raise TypeError("whole numbers expected")
        if not (0 < holder.pid < 1 << 31 and 0 < holder.session_timeout_ms < 1 << 31):
            raise TypeError("a process id and a time-out expected")
        return holder

    def alive(self) -> bool | None:
        """Return whether the process lives; None where that cannot be known from here.

        Dead is only who left a mark here: a clone of the machine it runs on is like it in all else.
        """
        machine = _machine()
        if not machine or not self.process or self.machine != machine or self.host != socket.gethostname():
            return None
        started = _started(self.pid)
        if started == self.process:
            return True
        return False if started is not None and marked(self.token) else None

    def refuse(self, topology_id: str, node: str, waited: str = "") -> AlreadyRunning:
        """Return the error for a second driver."""
        return AlreadyRunning(
            f"topology {topology_id!r} is run already by process {self.pid} on {self.host}, since "
            f"{self.since} ({node}){waited}; stop that driver first, or submit under another topology id"
        )


def _machine() -> str:
    """Identify this boot of this kernel and what process ids mean here; empty where that cannot be known."""
    try:
        if os.readlink("/proc/self") != str(os.getpid()):
            return ""
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _started(pid: int) -> str | None:
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
