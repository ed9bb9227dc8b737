"""The world's clock, its processes and their threads: greenlets in one thread, woken by one queue of events.

Nothing waits in real time. Between two waits a thread runs alone; which one is woken next, and when, the seed decides.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable
from queue import Empty
from typing import Any

from greenlet import GreenletExit, getcurrent, greenlet

WAKING_SECS = 0.0004
"""A woken thread runs within this time: so threads that are woken together run in any order."""

PREEMPTED = 0.1
"""How often another thread comes first where a lock is taken."""


class Deadlock(Exception):
    """Nothing is left to happen."""


class Process:
    """An operating system's process: a driver, an executor. Dead, it runs no more; paused, it runs later."""

    def __init__(self, world: Scheduler, name: str) -> None:
        self.world = world
        self.name = name
        self.alive = True
        self.paused = False
        self.paused_at = 0.0
        self.resumed_at = 0.0
        self.clock_offset = world.random.randrange(1, 10**6) / 7
        self.hash_seed = world.random.getrandbits(32)
        self.on_pause: list[Callable[[bool], None]] = []
        self.on_kill: list[Callable[[], None]] = []
        self._delayed: list[tuple[Callable[..., None], tuple[Any, ...]]] = []

    def deliver(self, call: Callable[..., None], *args: Any) -> None:
        """Let something happen in this process: now, or when it is woken from its pause, or never again."""
        if not self.alive:
            return
        if self.paused:
            self._delayed.append((call, args))
        else:
            call(*args)

    def kill(self) -> None:
        """As kill -9: no further step of it."""
        if self.alive:
            self.alive = False
            self._delayed.clear()
            for tell in self.on_kill:
                tell()

    def pause(self) -> None:
        """As SIGSTOP."""
        if self.alive and not self.paused:
            self.paused = True
            self.paused_at = self.world.now
            for tell in self.on_pause:
                tell(True)

    def resume(self) -> None:
        """As SIGCONT: all that came meanwhile happens, one after another, in no certain order."""
        if self.alive and self.paused:
            self.paused = False
            self.resumed_at = self.world.now
            for tell in self.on_pause:
                tell(False)
            delayed, self._delayed = self._delayed, []
            for call, args in delayed:
                self.world.after(self.world.jitter(), self.deliver, call, *args)


class Task(greenlet):
    """A thread of a process."""

    def __init__(self, world: Scheduler, process: Process, run: Callable[[], Any], name: str) -> None:
        super().__init__(lambda *_: self._run(run), world.hub)
        self.world = world
        self.process = process
        self.name = name
        self.thread: object = None
        self.ticket = 0
        self.ended = SimEvent(world)

    def _run(self, run: Callable[[], Any]) -> None:
        try:
            run()
        except Exception as error:
            self.world.died(self, error)

    def wake(self, ticket: int, value: Any) -> None:
        """Go on, if it still waits for this."""
        if ticket == self.ticket and not self.dead:
            self.ticket += 1
            self.world.enter(self, value)


class Scheduler:
    """Simulated time, and what happens in it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.hub = getcurrent()
        self.steps = 0
        self.closing = False
        self.tasks: list[Task] = []
        self._events: list[tuple[float, int, Callable[..., object], tuple[Any, ...]]] = []
        self._number = 0

    def jitter(self) -> float:
        """Return a time so short that only the order matters."""
        return self.random.random() * WAKING_SECS

    def after(self, secs: float, call: Callable[..., object], *args: Any) -> None:
        """Let something happen later, whatever process lives then."""
        self._number += 1
        heapq.heappush(self._events, (self.now + secs, self._number, call, args))

    def died(self, task: Task, error: Exception) -> None:
        """Record that a thread has ended with an error that nobody handles."""
        raise error

    def spawn(self, process: Process, run: Callable[[], Any], name: str) -> Task:
        """Start a thread."""
        task = Task(self, process, run, name)
        self.tasks.append(task)
        self.after(self.jitter(), process.deliver, task.wake, 0, None)
        return task

    def enter(self, task: Task, value: Any) -> None:
        """Run a thread until it waits."""
        task.switch(value)
        if task.dead:
            task.ended.set()

    def run(self, until: Callable[[], bool], deadline: float) -> bool:
        """Let things happen until a condition holds; False: it did not by `deadline`."""
        events = self._events
        while not until():
            if not events:
                raise Deadlock("nothing is left to happen")
            if events[0][0] > deadline:
                self.now = deadline
                return False
            self.now, _, call, args = heapq.heappop(events)
            self.steps += 1
            call(*args)
        return True

    # ------------------------------------------------------------------------------------ for threads

    @property
    def task(self) -> Task:
        """The thread that runs."""
        task = getcurrent()
        assert isinstance(task, Task), "only a thread of a simulated process can wait"
        return task

    def wait(self, timeout_secs: float | None = None) -> Any:
        """Wait to be woken; None after the time has passed."""
        if self.closing:
            raise GreenletExit
        task = self.task
        if timeout_secs is not None:
            self.after(max(timeout_secs, 0.0), task.process.deliver, task.wake, task.ticket, None)
        value = self.hub.switch()
        if self.closing:
            raise GreenletExit
        return value

    def wake(self, task: Task, ticket: int, value: Any = True) -> None:
        """Wake a waiting thread, soon."""
        self.after(self.jitter(), task.process.deliver, task.wake, ticket, value)

    def sleep(self, secs: float) -> None:
        """Let time pass."""
        self.wait(secs)

    def close(self) -> None:
        """End all threads, without any further step of theirs in this world."""
        self.closing = True
        for task in self.tasks:
            for _ in range(9):
                if task.dead or not task.gr_frame:
                    break
                task.throw(GreenletExit)
        self._events.clear()


# ---------------------------------------------------------------------------------------- what threads wait for


class SimEvent:
    """As threading.Event."""

    def __init__(self, world: Scheduler) -> None:
        self._world = world
        self._set = False
        self._waiting: list[tuple[Task, int]] = []

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        if not self._set:
            self._set = True
            waiting, self._waiting = self._waiting, []
            for task, ticket in waiting:
                self._world.wake(task, ticket)

    def clear(self) -> None:
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        if not self._set:
            task = self._world.task
            self._waiting.append((task, task.ticket))
            self._world.wait(timeout)
        return self._set


class SimLock:
    """As threading.Lock, or RLock."""

    def __init__(self, world: Scheduler) -> None:
        self._world = world
        self._owner: object = None
        self._depth = 0
        self._waiting: deque[tuple[Task, int]] = deque()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *error: object) -> None:
        self.release()

    def acquire(self) -> bool:
        me = getcurrent()
        # Between threads of the operating system another one may come first here.
        if self._owner is not me and me is not self._world.hub and self._world.random.random() < PREEMPTED:
            self._world.sleep(self._world.jitter())
        while self._owner is not None and self._owner is not me:
            task = self._world.task
            self._waiting.append((task, task.ticket))
            self._world.wait()
        self._owner = me
        self._depth += 1
        return True

    def release(self) -> None:
        self._depth -= 1
        if not self._depth:
            self._owner = None
            if self._waiting:
                self._world.wake(*self._waiting.popleft())


class SimCondition(SimLock):
    """As threading.Condition."""

    def __init__(self, world: Scheduler) -> None:
        super().__init__(world)
        self._waiting_for_change: list[tuple[Task, int]] = []

    def wait(self, timeout: float | None = None) -> None:
        task = self._world.task
        self._waiting_for_change.append((task, task.ticket))
        self.release()
        self._world.wait(timeout)
        self.acquire()

    def notify_all(self) -> None:
        waiting, self._waiting_for_change = self._waiting_for_change, []
        for task, ticket in waiting:
            self._world.wake(task, ticket)


class SimQueue:
    """As queue.SimpleQueue."""

    def __init__(self, world: Scheduler) -> None:
        self._world = world
        self._items: deque[Any] = deque()
        self._waiting: deque[tuple[Task, int]] = deque()

    def put(self, item: Any) -> None:
        self._items.append(item)
        while self._waiting:
            task, ticket = self._waiting.popleft()
            if ticket == task.ticket:
                self._world.wake(task, ticket)
                break

    def empty(self) -> bool:
        return not self._items

    def get(self, *, timeout: float | None = None) -> Any:
        deadline = None if timeout is None else self._world.now + timeout
        while not self._items:
            left = None if deadline is None else deadline - self._world.now
            if left is not None and left <= 0:
                raise Empty
            task = self._world.task
            self._waiting.append((task, task.ticket))
            self._world.wait(left)
        return self._items.popleft()

    def get_nowait(self) -> Any:
        if not self._items:
            raise Empty
        return self._items.popleft()
