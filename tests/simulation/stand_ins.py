"""What the simulation hands in for the world, and for kazoo's client; and what shuts the real world out meanwhile.

What must not know that it is simulated stays as it is, but for some sizes: small ones show more.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any, NoReturn

from stormline.runtime.errors import StateTooLarge
from stormline.runtime.world.machine import Machine
from stormline.runtime.world.world import REAL
from stormline.runtime.world.world import World as HandedIn
from tests.simulation.scheduler import Scheduler, SimCondition, SimEvent, SimLock, SimQueue
from tests.simulation.world import World

WRITE_BYTES_MAX = 150
"""Where writes are to be small: a batch of the simulated sources takes up to 220 bytes."""

CLAIM_POLL_SECS = 0.7
"""Time between a claim's looks whether the driver before it has ended: each costs many simulated steps."""

STARTED_AT = 1.7e9
"""What the clocks on the walls say when a history begins."""


class SimThread:
    """A thread of the process of the thread that starts it."""

    def __init__(self, world: Scheduler, name: str, target: Callable[..., object], *args: Any) -> None:
        self.ident = 0
        self._task = world.spawn(world.task.process, lambda: target(*args), name)
        self._task.thread = self

    def join(self, timeout: float | None = None) -> None:
        self._task.ended.wait(timeout)

    def is_alive(self) -> bool:
        return not self._task.ended.is_set()


class SimMachine(Machine):
    """The machine that all drivers run on; whether one can see of another that it lives, the seed decides."""

    def __init__(self, world: World) -> None:
        self._world = world

    def host(self) -> str:
        return "simulated"

    def pid(self) -> int:
        return self._world.processes.index(self._world.task.process) + 1

    def boot(self) -> str:
        return self._world.machine

    def started(self, pid: int) -> str:
        return self._world.started(pid)

    def leave_mark(self, token: str) -> None:
        """Leave none: no history has clones of a machine."""

    def remove_mark(self, token: str) -> None:
        """Remove none."""

    def marked(self, token: str) -> bool:
        return True


def handed_in(world: World) -> HandedIn:
    """Return what the code under test is handed in for the world, and lives in."""
    steps = Random(world.seed)  # apart from the seed's own, so that no fault depends on how much a driver writes

    def monotonic() -> float:
        return world.now + world.task.process.clock_offset

    def start_thread(name: str, target: Callable[..., object], *args: Any) -> SimThread:
        return SimThread(world, name, target, *args)

    return HandedIn(
        monotonic=monotonic,
        passed_secs=monotonic,
        wall_secs=lambda: STARTED_AT + world.now,
        sleep=world.sleep,
        start_thread=start_thread,
        current_thread=lambda: world.task.thread,
        event=lambda: SimEvent(world),
        lock=lambda: SimLock(world),
        condition=lambda: SimCondition(world),
        queue=lambda: SimQueue(world),
        new_id=lambda: f"{world.random.getrandbits(128):032x}",
        random_below=steps.randrange,
        machine=SimMachine(world),
    )


class Escaped(AssertionError):
    """Something in a simulated history reached for the real world."""


def _shut(name: str) -> Callable[..., NoReturn]:
    def refuse(*args: object, **options: object) -> NoReturn:
        raise Escaped(f"{name} of the real world was used in a simulated one: hand the world in")

    return refuse


def _check_small(sizes: Sequence[tuple[str, int]], beside_bytes: int = 0) -> None:
    """As check_sizes, where a write takes little."""
    if len(sizes) > 1 and sum(size for _, size in sizes) > WRITE_BYTES_MAX:
        raise StateTooLarge("it does not fit in one write")


@contextmanager
def sealed_off(world: World) -> Iterator[None]:
    """Let nothing reach the real world meanwhile; some sizes are others, as the seed decides."""
    changed: list[tuple[Any, str, Any]] = []

    def put(holder: Any, name: str, value: Any) -> None:
        changed.append((holder, name, getattr(holder, name)))
        object.__setattr__(holder, name, value)

    def put_in(module: str, name: str, value: Any) -> None:
        put(importlib.import_module(f"stormline.runtime.{module}"), name, value)

    for field in dataclasses.fields(REAL):
        put(REAL, field.name, _shut(field.name))
    put_in("zookeeper.claim", "POLL_SECS", CLAIM_POLL_SECS)
    if world.faults.chance(0.5):  # so small that slots send each other many, as large batches do
        put_in("tuples.blocks", "BLOCK_BYTES", 1)
    if world.faults.chance(0.2):  # so small that what a wave has fixed takes several writes, as large metadata does
        put_in("state.state_tree", "check_sizes", _check_small)
    try:
        yield
    finally:
        for holder, name, value in reversed(changed):
            object.__setattr__(holder, name, value)
