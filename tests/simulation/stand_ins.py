"""Stand-ins for `time`, `threading`, `queue` and KazooClient, put where the code under test looks for them.

What must not know that it is simulated stays as it is: only these names of these modules are others meanwhile.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from stormline.runtime.errors import StateTooLarge
from tests.simulation.scheduler import Empty, Scheduler, SimCondition, SimEvent, SimLock, SimQueue, Task
from tests.simulation.world import World

TIMED = (
    "coordination.topology_runner",
    "coordination.wave_thread",
    "coordination.committer",
    "coordination.shutdown",
    "coordination.batch_definitions",
    "world.daemon_threads",
    "world.own_thread",
    "coordination.spout_questions",
    "zookeeper.session",
    "zookeeper.ownership",
    "zookeeper.claim",
    "zookeeper.store",
    "cluster.topology_handle",
)
"""Modules of the runtime that wait, start threads, or draw what is to be drawn by the seed."""

WRITE_BYTES_MAX = 150
"""Where writes are to be small: a batch of the simulated sources takes up to 220 bytes."""

CLAIM_POLL_SECS = 0.7
"""Time between a claim's looks whether the driver before it has ended: each costs many simulated steps."""


class SimThread:
    """As threading.Thread, in the process of the thread that made it."""

    def __init__(
        self,
        target: Callable[..., Any],
        args: tuple[Any, ...] = (),
        daemon: bool = False,
        name: str = "thread",
        *,
        world: Scheduler,
    ) -> None:
        self._world = world
        self._process = world.task.process
        self._target = target
        self._args = args
        self._name = name
        self._task: Task | None = None
        self.ident = 0

    def start(self) -> None:
        self._task = self._world.spawn(self._process, lambda: self._target(*self._args), self._name)
        self._task.thread = self

    def join(self, timeout: float | None = None) -> None:
        assert self._task is not None
        self._task.ended.wait(timeout)

    def is_alive(self) -> bool:
        return self._task is not None and not self._task.ended.is_set()


def _check_small(sizes: Sequence[tuple[str, int]], beside_bytes: int = 0) -> None:
    """As check_sizes, where a write takes little."""
    if len(sizes) > 1 and sum(size for _, size in sizes) > WRITE_BYTES_MAX:
        raise StateTooLarge("it does not fit in one write")


@contextmanager
def stand_ins(world: World, kazoo_client: Callable[..., Any]) -> Iterator[None]:
    """Let the code under test live in `world`."""
    random = world.random
    time = SimpleNamespace(monotonic=lambda: world.now + world.task.process.clock_offset, sleep=world.sleep)
    threading = SimpleNamespace(
        Event=lambda: SimEvent(world),
        Lock=lambda: SimLock(world),
        RLock=lambda: SimLock(world),
        Condition=lambda: SimCondition(world),
        Thread=lambda *args, **options: SimThread(*args, **options, world=world),
        current_thread=lambda: world.task.thread,
    )
    queue = SimpleNamespace(SimpleQueue=lambda: SimQueue(world), Empty=Empty)
    uuid = SimpleNamespace(uuid4=lambda: SimpleNamespace(hex=f"{random.getrandbits(128):032x}"))
    names: dict[str, Any] = {"time": time, "threading": threading, "queue": queue, "uuid": uuid}
    changed: list[tuple[Any, str, Any]] = []

    def put(module: Any, name: str, value: Any) -> None:
        changed.append((module, name, getattr(module, name)))
        setattr(module, name, value)

    for module_name in TIMED:
        module = importlib.import_module(f"stormline.runtime.{module_name}")
        for name, stand_in in names.items():
            if hasattr(module, name):
                put(module, name, stand_in)
    put(importlib.import_module("stormline.runtime.zookeeper.session"), "KazooClient", kazoo_client)
    put(importlib.import_module("stormline.runtime.coordination.committer"), "passed_secs", time.monotonic)
    handle = importlib.import_module("stormline.runtime.cluster.topology_handle")
    put(handle, "watch_loop", lambda *watched: None)  # it only warns
    holder = importlib.import_module("stormline.runtime.state.driver_identity")
    put(holder, "_machine", lambda: world.machine)
    put(holder, "_started", world.started)
    put(holder, "marked", lambda token: True)
    put(importlib.import_module("stormline.runtime.zookeeper.claim"), "leave_mark", lambda token: None)
    put(holder, "os", SimpleNamespace(getpid=lambda: world.processes.index(world.task.process) + 1))
    put(importlib.import_module("stormline.runtime.zookeeper.claim"), "POLL_SECS", CLAIM_POLL_SECS)
    if world.faults.chance(0.5):  # so small that slots send each other many, as large batches do
        put(importlib.import_module("stormline.runtime.tuples.blocks"), "BLOCK_BYTES", 1)
    if world.faults.chance(0.2):  # so small that what a wave has fixed takes several writes, as large metadata does
        put(importlib.import_module("stormline.runtime.state.state_tree"), "check_sizes", _check_small)
    try:
        yield
    finally:
        for module, name, value in reversed(changed):
            setattr(module, name, value)
