"""World: time, threads, chance and the machine, as what waits is handed them.

Production makes one, `REAL`; the simulation hands in its own. So nothing that waits, or draws by chance, can run beside
the simulated world: modules of the runtime import none of `time`, `threading`, `queue`, `random`, `secrets`, `uuid`.
"""

from __future__ import annotations

import os
import queue
import secrets
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, TypeVar

from stormline.runtime.world.clock import passed_secs
from stormline.runtime.world.machine import Machine

T = TypeVar("T")

Empty = queue.Empty
"""What a queue raises that has nothing for whoever waits no longer."""


class Thread(Protocol):
    """A thread that has been started. It never keeps the process from ending."""

    @property
    def ident(self) -> int | None:
        """What Python calls it by."""

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end."""

    def is_alive(self) -> bool:
        """Return whether it has not ended."""


class Event(Protocol):
    """As `threading.Event`."""

    def is_set(self) -> bool:
        """Return whether it is set."""

    def set(self) -> None:
        """Wake all that wait."""

    def clear(self) -> None:
        """Let all wait again."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set; return whether it is."""


class Lock(Protocol):
    """As `threading.RLock`: who holds it may take it again."""

    def __enter__(self) -> bool: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None, /
    ) -> None: ...


class Condition(Lock, Protocol):
    """As `threading.Condition`."""

    def wait(self, timeout: float | None = None) -> object:
        """Give the lock up, wait to be notified, and take it again."""

    def notify_all(self) -> None:
        """Wake all that wait."""


class Queue(Protocol[T]):
    """As `queue.SimpleQueue`."""

    def put(self, item: T) -> None:
        """Add an item."""

    def get(self, *, timeout: float | None = None) -> T:
        """Wait for an item; raise `Empty` where none has come within `timeout`."""

    def get_nowait(self) -> T:
        """Return an item, or raise `Empty`."""

    def empty(self) -> bool:
        """Return whether there is none."""


class StartThread(Protocol):
    """Starts a thread."""

    def __call__(self, name: str, target: Callable[..., object], *args: Any) -> Thread:
        """Let `target` run in a thread of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What a process stands in. A test that needs another clock replaces it: `replace(REAL, monotonic=…)`.

    Args:
        monotonic: seconds since some moment; may stand still while the machine sleeps.
        passed_secs: seconds since some moment, also those that the machine slept.
        wall_secs: seconds since 1970.
        sleep: waits for so many seconds.
        start_thread: see `StartThread`.
        current_thread: returns the thread that asks.
        event, lock, condition, queue: each makes a new one.
        new_id: returns 32 hexadecimal digits that nobody has drawn before.
        random_below: returns a number from 0 to below its argument, that nobody can tell beforehand.
        machine: where this process runs.
    """

    monotonic: Callable[[], float]
    passed_secs: Callable[[], float]
    wall_secs: Callable[[], float]
    sleep: Callable[[float], object]
    start_thread: StartThread
    current_thread: Callable[[], object]
    event: Callable[[], Event]
    lock: Callable[[], Lock]
    condition: Callable[[], Condition]
    queue: Callable[[], Queue[Any]]
    new_id: Callable[[], str]
    random_below: Callable[[int], int]
    machine: Machine


def _start_thread(name: str, target: Callable[..., object], *args: Any) -> threading.Thread:
    thread = threading.Thread(target=target, args=args, daemon=True, name=name)
    thread.start()
    return thread


def _random_below(limit: int) -> int:
    """As `secrets.randbelow`, which gives the interpreter away for it: each commit draws once, and then waited."""
    if not hasattr(os, "getrandom"):  # Linux has it
        return secrets.randbelow(limit)
    bits = (limit - 1).bit_length()
    while True:  # twice, on average, where it must be most often
        number = int.from_bytes(os.getrandom(-(-bits // 8)), "big") >> (-bits % 8)
        if number < limit:
            return number


REAL = World(
    monotonic=time.monotonic,
    passed_secs=passed_secs,
    wall_secs=time.time,
    sleep=time.sleep,
    start_thread=_start_thread,
    current_thread=threading.current_thread,
    event=threading.Event,
    lock=threading.RLock,
    condition=threading.Condition,
    queue=queue.SimpleQueue,
    new_id=lambda: uuid.uuid4().hex,
    random_below=_random_below,
    machine=Machine(),
)
"""The world as it is."""
