"""Simulates one seed: drivers come and go in a world of faults; then the faults stop, and all must be committed."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Any

from stormline.topology.commit_groups import commit_groups
from stormline.topology.config import (
    COMMIT_GROUP_MAX,
    MAX_BATCH_ATTEMPTS,
    MAX_SPOUT_PENDING,
    MESSAGE_TIMEOUT_SECS,
    SINK_SWEEP_SECS,
)
from stormline.topology.plan import Plan
from tests.simulation.components import SPOUTS, Shape, plan_of
from tests.simulation.databases import Databases
from tests.simulation.driver import Driver
from tests.simulation.faults import DRIVER_FAULTS
from tests.simulation.kazoo_client import SimKazooClient
from tests.simulation.oracle import NODE, Oracle
from tests.simulation.sinks import SinkServer
from tests.simulation.source import Source
from tests.simulation.stand_ins import handed_in, sealed_off
from tests.simulation.stores import StoreServer
from tests.simulation.world import World
from tests.simulation.zookeeper import Change, Node, ZooKeeper

FAULTS_SECS = (1.0, 1.5, 2.0, 5.0)
"""How long there are faults; the seed draws which."""

CALM_SECS = 300.0
"""How long all may take without faults: a frozen batch of four partitions is read as it was once in 16 replays."""

LOOK_SECS = 0.4

TOLD_SECS = 0.05
"""Time after which a driver has been told that its claim was deleted."""

SET_BACK, SET_BACK_OPAQUE = 0.3, 0.6
"""Of so many histories the state may be set back, each once: most end there, with an error that says so. An opaque
spout may then read a batch otherwise, which is of most interest.
"""

STORED = 0.35
"""In so many of the histories whose commits are not on the executors the bolts store in a store."""

SUNK = 0.4
"""In so many of all others a bolt writes into a two-phase sink, too; their state is never set back."""

ENDED = 0.5
"""In so many of those the driver ends in order, before the history does."""

BUSY = 0.5
"""In so many of those while it is at work."""

SWEEP_SECS = 5.0

Backup = tuple[dict[str, Node], Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one seed."""

    seed: int
    faults_on: bool
    violation: str | None
    history: tuple[str, ...]
    checksum: int
    faults: Counter[str]
    txids: int
    replays: int
    takeovers: int
    turned_away: int
    steps: int
    simulated_secs: float


class Simulator:
    """One seed's world and its supervisor, who starts a driver where none seems to live."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.handed_in = handed_in(world)
        random = world.random
        self.shape = Shape(
            random.choice(list(SPOUTS)),
            basic=random.random() < 0.3,
            placed=random.random() < 0.3,
            locked=random.random() < 0.2,
            declared=random.random() < 0.75,
        )
        self.shape = self._stored(self.shape)
        self.slots = random.choice((1, 2, 3, 3))
        self.pending_max = random.choice((1, 2, 3, 5))
        plan = plan_of(self.shape)
        seed_config: dict[str, Any] = {
            MAX_SPOUT_PENDING: self.pending_max,
            MESSAGE_TIMEOUT_SECS: random.choice((0.7, 3.0)),
        }
        if self.shape.sunk:
            seed_config[SINK_SWEEP_SECS] = SWEEP_SECS
        if random.random() < 0.1 and "opaque" not in self.shape.spout:  # opaque ones wait until they read the same
            seed_config[MAX_BATCH_ATTEMPTS] = 6
        self.plan = dataclasses.replace(plan, config={**plan.config, **seed_config})
        self.drivers: list[Driver] = []
        self.calm_from = float("inf")
        self._backup: Backup | None = None
        set_back = SET_BACK_OPAQUE if "opaque" in self.shape.spout else SET_BACK
        self._sets_back = random.random() < set_back and not self.shape.sunk
        self._restoring = False
        self._ending = False
        self._started = 0
        group_max = commit_groups(self.plan_of_driver(0)).size_max if self.shape.kept else None
        world.oracle = Oracle(world, self.pending_max, self.shape.spout, self.shape.placed, group_max)
        world.store = StoreServer(world)
        world.zookeeper = ZooKeeper(world, self._applied)
        world.databases = Databases(world)
        world.sinks = SinkServer(world)
        world.source = Source(world.faults)
        world.oust = self._oust

    def _stored(self, shape: Shape) -> Shape:
        """Let bolts store in a store, in some of the histories: drawn apart, so that all others stay what they are."""
        chance = Random(f"{self.world.seed} stores").random()
        kept = not shape.placed and chance < STORED
        sunk = not kept and Random(f"{self.world.seed} sinks").random() < SUNK
        return dataclasses.replace(shape, kept=kept, sunk=sunk)

    def plan_of_driver(self, number: int) -> Plan:
        """Return the plan as one driver has it: each may have groups of another size, 0 the largest."""
        sizes = (1, 2, 3, 64) if number else (64,)
        size = Random(f"{self.world.seed} groups {number}").choice(sizes)
        return dataclasses.replace(self.plan, config={**self.plan.config, COMMIT_GROUP_MAX: size})

    def client(self, hosts: str, timeout: float, **options: Any) -> SimKazooClient:
        """Return what KazooClient(…) gives."""
        world = self.world
        client = SimKazooClient(world.task.process, world.zookeeper, world.faults, timeout)
        world.clients[world.task.process] = client
        return client

    # ------------------------------------------------------------------------------------ one seed

    def run(self) -> None:
        """Run the history to its end, or to its first violation."""
        world, oracle = self.world, self.world.oracle
        world.note(f"seed {world.seed}: {self.shape}, pending {self.pending_max}, slots {self.slots}")
        self._look()
        world.run(lambda: oracle.over, world.random.choice(FAULTS_SECS))
        if not oracle.over:
            self._calm()
            end = Random(f"{world.seed} end")
            if self.shape.sunk and end.random() < ENDED:
                self._end(busy=end.random() < BUSY)
            done = world.run(lambda: oracle.over or self._all_done(), world.now + CALM_SECS)
            if not done:
                oracle.broken(f"liveness: {oracle.committed} is committed, {oracle.positions} of {world.source.ends}")
            # A zombie's effect may be on its way still.
            world.run(lambda: oracle.over or world.now > world.late_until, world.now + CALM_SECS)
        if not oracle.over and not world.databases.set_back:
            oracle.check_databases()

    def _all_done(self) -> bool:
        return self.world.oracle.drained()

    def _calm(self) -> None:
        self.world.note("the faults stop")
        self.world.faults.on = False
        self.calm_from = self.world.now
        self.world.source.hidden.clear()
        self.world.source.more()  # something is left to commit: liveness is seen in every history
        self.world.zookeeper.reachable = True
        for driver in self.drivers:
            driver.process.resume()

    def _end(self, busy: bool) -> None:
        """Let the driver end when what was late is there: it leaves nothing behind that no record names.

        Args:
            busy: it ends as soon as something is prepared; else when all is committed.
        """
        world = self.world

        def ready() -> bool:
            at_work = bool(world.sinks.undecided()) if busy else world.oracle.all_committed()
            return self._running() is not None and at_work and world.now > world.late_until

        world.run(lambda: world.oracle.over or ready() or self._all_done(), world.now + CALM_SECS)
        driver = self._running()
        if world.oracle.over or driver is None or driver.handle is None:
            return
        self._ending = True
        handle, before = driver.handle, world.sinks.undecided()
        handle._runner.stop()
        world.run(lambda: world.oracle.over or not driver.process.alive, world.now + CALM_SECS)
        self._ending = False
        left = before & world.sinks.undecided(handle._runner._store.epoch)
        if left and not (world.oracle.over or driver.process.alive or handle.error):
            world.oracle.broken(f"R5: driver {driver.number} has ended, and leaves {sorted(left)}")

    def _running(self) -> Driver | None:
        """Return the driver that runs the topology, if one does."""
        alive = (one for one in self.drivers if one.process.alive)
        return next((one for one in alive if one.handle is not None and one.handle.running), None)

    def _look(self) -> None:
        """What the supervisor and fate do, again and again."""
        world, faults = self.world, self.world.faults
        self.drivers = [driver for driver in self.drivers if driver.process.alive]
        running = [driver for driver in self.drivers if not driver.process.paused]
        if self._restoring:
            if world.now > world.late_until:
                self._restore()
        elif not running and not self._ending:
            self._start()
        elif faults.on:
            kind = faults.one_of(DRIVER_FAULTS)
            if kind is not None:
                self._strike(kind, running[faults.below(len(running))])
        lost = 0 if self._backup is None else world.oracle.committed - self._backup[1][0]
        if faults.on and self._sets_back and lost > 1 and faults.strikes("state: set back"):
            self._sets_back, self._restoring = False, True
            for driver in self.drivers:
                driver.process.kill()
        live = f"{NODE}/live"
        if live in world.zookeeper.nodes and faults.strikes("driver: unclaimed"):
            world.zookeeper.remove(live)
            for client in world.clients.values():
                world.after(TOLD_SECS, client.probe_unclaimed, world.now)
        if faults.on:
            if faults.chance(0.3):
                world.source.more()
            partition = faults.below(len(world.source.ends))
            if faults.strikes("partition: vanished"):
                world.source.hidden.add(partition)
                world.after(faults.long_secs(), world.source.hidden.discard, partition)
        world.after(LOOK_SECS * (0.5 + world.random.random()), self._look)

    def _start(self) -> None:
        self._started += 1
        self.drivers.append(Driver(self, self._started))

    def _strike(self, kind: str, driver: Driver) -> None:
        world, faults = self.world, self.world.faults
        world.note(f"{kind}: {driver.number}")
        if kind == "driver: killed":
            driver.process.kill()
        elif kind == "driver: paused":
            driver.process.pause()
            world.after(faults.pause_secs(), driver.process.resume)
        elif kind == "driver: second":
            self._start()
        elif kind == "driver: stopped":
            if driver.handle is not None:
                driver.handle._runner.stop()
        else:
            self._outage()

    def _applied(self, session: int, changes: Sequence[Change]) -> None:
        """See what ZooKeeper has applied; somebody backs it up now and then."""
        oracle = self.world.oracle
        oracle.applied(session, changes)
        # One that holds a batch which is fixed, and of which no effect can have happened, is of most interest.
        ahead = oracle.stored.get(oracle.committed + 2)
        if self._sets_back and self._backup is None and ahead is not None and ahead["fixed"]:
            self._backup = self.world.zookeeper.backup(), oracle.backup()

    def _restore(self) -> None:
        """Put a backup in the place of the state, when no driver lives and nothing of theirs is under way any more."""
        assert self._backup is not None
        nodes, known = self._backup
        self.world.zookeeper.restore(nodes)
        self.world.oracle.set_back(known)
        self.world.databases.set_back = True
        self._restoring = False

    def _oust(self) -> None:
        """Somebody deletes the claim of a driver that lives, and starts another one."""
        if f"{NODE}/live" in self.world.zookeeper.nodes:
            self.world.zookeeper.remove(f"{NODE}/live")
        self._start()

    def _outage(self) -> None:
        zookeeper, world = self.world.zookeeper, self.world
        zookeeper.cut_off()
        world.after(world.faults.long_secs(), partial(setattr, zookeeper, "reachable", True))


def simulate(seed: int, faults_on: bool = True) -> Outcome:
    """Return what becomes of a seed: always the same."""
    with World(seed, faults_on) as world:
        simulator = Simulator(world)
        with sealed_off(world):
            simulator.run()
            oracle = world.oracle
            outcome = Outcome(
                seed,
                faults_on,
                None if oracle.violation is None else str(oracle.violation),
                tuple(world.history),
                world.checksum,
                world.faults.counts,
                oracle.committed,
                oracle.replays,
                oracle.takeovers,
                world.databases.turned_away,
                world.steps,
                world.now,
            )
            world.close()
    return outcome
