"""A driver of the simulated world: a process that starts the topology, and what it may end with: law 6 (fencing)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stormline.runtime.cluster.submission import start_topology
from stormline.runtime.cluster.topology_handle import TopologyHandle
from stormline.runtime.errors import (
    AlreadyRunning,
    EngineStopped,
    Fenced,
    SessionLost,
    TooManyAttempts,
    TopologyFailed,
    ZooKeeperUnreachable,
)
from stormline.runtime.state.state_store import OnLost
from stormline.runtime.tasks.task_environment import TaskEnvironment, registry_of
from stormline.runtime.zookeeper.store import ZooKeeperStateStore
from stormline.state.errors import StoreMismatch
from stormline.topology.errors import StormlineError
from tests.simulation.databases import OtherHistory
from tests.simulation.executors import SimEngine
from tests.simulation.oracle import NODE
from tests.simulation.scheduler import Process
from tests.simulation.sinks import LOST

if TYPE_CHECKING:
    from tests.simulation.simulator import Simulator

STOPPING_SECS = 30.0
"""How long after the last fault a driver may still stop for it: it may have slept, and waits for its threads."""

SESSION_MS = 2000
CONNECTION_MS = 3000

BUG = "ZeroDivisionError"
"""What bolts with a bug raise on order: a topology may stop for nothing else that user code raises."""

EXPECTED_ENDS = (SessionLost, Fenced, AlreadyRunning, ZooKeeperUnreachable)
"""What a driver may end with that others, or the network, have ended."""


class Driver:
    """A driver's process."""

    def __init__(self, simulator: Simulator, number: int) -> None:
        self._simulator = simulator
        self.number = number
        self.process = Process(simulator.world, f"driver {number}")
        self.handle: TopologyHandle | None = None
        simulator.world.processes.append(self.process)
        simulator.world.spawn(self.process, self._run, "main")

    def _run(self) -> None:
        world, simulator = self._simulator.world, self._simulator
        world.note(f"driver {self.number} starts")
        try:
            self.handle = start_topology(
                "simulated",
                simulator.plan_of_driver(self.number),
                self._open,
                self._engine,
                world=simulator.handed_in,
            )
        except EXPECTED_ENDS as error:
            world.note(f"driver {self.number} could not start: {type(error).__name__}")
        except StormlineError as error:
            world.oracle.broken(f"a driver could not start: {type(error).__name__}: {error}")
        else:
            self.handle._runner.ended.wait()
            self._check_end(self.handle.error)
        world.sleep(world.faults.long_secs() if world.faults.on else 0.0)
        self.process.kill()

    def _open(self, on_lost: OnLost) -> ZooKeeperStateStore:
        plan = self._simulator.plan
        store = ZooKeeperStateStore.open(
            "zookeeper:2181",
            NODE.rpartition("/")[0],
            plan.topology_id,
            registry_of(plan),
            plan.describe(),
            on_lost=on_lost,
            session_timeout_ms=SESSION_MS,
            connection_timeout_ms=CONNECTION_MS,
            world=self._simulator.handed_in,
            make_client=self._simulator.client,
        )
        self._simulator.world.clients[self.process].certain = store.connected
        return store

    def _engine(self, env: TaskEnvironment) -> SimEngine:
        return SimEngine(self._simulator.world, env, self.process, self._simulator.slots)

    def _check_end(self, error: BaseException | None) -> None:
        world = self._simulator.world
        world.note(f"driver {self.number} ends: {type(error).__name__}")
        # What a fault has begun may end a driver when there are no more.
        late = world.now < self._simulator.calm_from + STOPPING_SECS
        expected = EXPECTED_ENDS + ((EngineStopped, TopologyFailed, TooManyAttempts) if late else ())
        mismatch = (OtherHistory.__name__, StoreMismatch.__name__)
        if world.databases.set_back and isinstance(error, TopologyFailed) and any(m in str(error) for m in mismatch):
            world.oracle.told = True
            return
        if world.sinks.forgotten and isinstance(error, TopologyFailed) and LOST in str(error):
            world.oracle.told = True
            return
        bug = isinstance(error, TopologyFailed) and BUG not in str(error)
        if error is not None and (bug or not isinstance(error, expected)):
            world.oracle.broken(f"a driver stopped with {type(error).__name__}: {error}")
        epoch = self.handle._runner._store.epoch if self.handle is not None else 0
        if isinstance(error, Fenced) and f"epoch {epoch} owns it" in str(error):
            world.oracle.broken(f"law 6: driver {self.number} of epoch {epoch} was fenced by itself")
