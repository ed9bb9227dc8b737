"""DriverIdentity: which process holds a topology, and whether it is provably alive or dead."""

from __future__ import annotations

import datetime as dt
from dataclasses import asdict, dataclass
from typing import Any

from stormline.runtime.errors import AlreadyRunning
from stormline.runtime.world.machine import Machine
from stormline.runtime.world.world import World


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
    def this_process(cls, world: World, session_timeout_ms: int, token: str) -> DriverIdentity:
        """Return the holder that this process would be."""
        machine = world.machine
        pid = machine.pid()
        since = dt.datetime.fromtimestamp(world.wall_secs(), dt.UTC).isoformat(timespec="seconds")
        return cls(machine.host(), pid, since, machine.boot(), machine.started(pid) or "", session_timeout_ms, token)

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

    def alive(self, here: Machine) -> bool | None:
        """Return whether the process lives; None where that cannot be known from `here`.

        Dead is only who left a mark here: a clone of the machine it runs on is like it in all else.
        """
        boot = here.boot()
        if not boot or not self.process or self.machine != boot or self.host != here.host():
            return None
        started = here.started(self.pid)
        if started == self.process:
            return True
        return False if started is not None and here.marked(self.token) else None

    def refuse(self, topology_id: str, node: str, waited: str = "") -> AlreadyRunning:
        """Return the error for a second driver."""
        return AlreadyRunning(
            f"topology {topology_id!r} is run already by process {self.pid} on {self.host}, since "
            f"{self.since} ({node}){waited}; stop that driver first, or submit under another topology id"
        )
