"""World: all that one seed's history happens in. User code, which topologies share, finds it by `world()`."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.simulation.faults import Faults
from tests.simulation.scheduler import Process, Scheduler, Task

if TYPE_CHECKING:
    from tests.simulation.databases import Databases
    from tests.simulation.kazoo_client import SimKazooClient
    from tests.simulation.oracle import Oracle
    from tests.simulation.sinks import SinkServer
    from tests.simulation.source import Source
    from tests.simulation.stores import StoreServer
    from tests.simulation.zookeeper import ZooKeeper

HISTORY_MAX = 200

_worlds: list[World] = []


class World(Scheduler):
    """Scheduler, servers, and a history: the last events as text, and a checksum of all of them."""

    source: Source
    zookeeper: ZooKeeper
    databases: Databases
    store: StoreServer
    sinks: SinkServer
    oracle: Oracle
    oust: Callable[[], None]

    def __init__(self, seed: int, faults_on: bool = True) -> None:
        super().__init__(seed)
        self.seed = seed
        self.executing: Process | None = None
        self.late_until = 0.0
        self.checksum = 0
        self.history: deque[str] = deque(maxlen=HISTORY_MAX)
        self.faults = Faults(self.random, self.note, faults_on)
        self.processes: list[Process] = []
        self.clients: dict[Process, SimKazooClient] = {}
        # Where drivers run on one machine, one can see whether another one lives; paused, it does.
        self.machine = "machine" if self.faults.chance(0.5) else ""

    def note(self, what: str) -> None:
        """Add an event to the history."""
        line = f"{self.now:10.4f}  {what}"
        self.checksum = zlib.crc32(line.encode(), self.checksum)
        self.history.append(line)

    def expect(self, secs: float) -> None:
        """Record that after this time something may still have an effect, whatever becomes of who sent it."""
        self.late_until = max(self.late_until, self.now + secs)

    def died(self, task: Task, error: Exception) -> None:
        """No thread of Stormline's may end like that."""
        self.oracle.broken(f"thread {task.name} of {task.process.name} died of {error!r}")

    def started(self, pid: int) -> str:
        """Return what identifies a driver's process among all that ever had this number; empty: it is dead."""
        return f"process {pid}" if self.processes[pid - 1].alive else ""

    def process_here(self) -> Process:
        """Return the process that runs now: an executor's code may run in a thread of the engine."""
        return self.executing or self.task.process

    def __enter__(self) -> World:
        _worlds.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self.close()
        finally:
            _worlds.pop()


def world() -> World:
    """Return the world that user code runs in."""
    return _worlds[-1]
