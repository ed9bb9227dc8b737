"""Emitters: the emitter of each spout task of a process, and where it is called."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from stormline.runtime.world.own_thread import CallAbandoned, OwnThread
from stormline.runtime.world.world import Thread, World
from stormline.topology.contracts import IEmitter
from stormline.topology.spout_parts import method_of

T = TypeVar("T")


class _Emitter:
    """One emitter, and the thread in which it is made, called and closed; None: that of the caller."""

    def __init__(self, make: Callable[[], Any], thread: OwnThread | None) -> None:
        self._make = make
        self.thread = thread
        self.made: Any = None

    def make(self) -> Any:
        """Return the emitter, made in this call if it was not before."""
        if self.made is None:
            self.made = self._make()
        return self.made

    def close(self) -> None:
        """Close the emitter, if it was made."""
        if self.made is not None:
            method_of(self.made, IEmitter, "close")()


class Emitters:
    """One emitter a spout task, for as long as the process works on the topology.

    In the driver each has a thread of its own, for as long as the topology runs, and what it remembers is its own: so
    a call that hangs is waited for. On the executors a worker calls its own, in the one thread that it has.

    Args:
        make: makes the emitter of a task.
        in_threads: whether this is the driver.
    """

    def __init__(self, world: World, make: Callable[[int], Any], in_threads: bool) -> None:
        self._world = world
        self._make = make
        self._in_threads = in_threads
        self._emitters: dict[int, _Emitter] = {}
        self._lock = threading.Lock()  # nobody's code runs under it: it may hang
        self._cancelled = False

    def begin_wave(self) -> None:
        """Record that a wave begins to emit."""
        self._cancelled = False

    def cancel_wave(self) -> None:
        """Let the wave that emits now emit nothing more after the present call."""
        self._cancelled = True

    def emit(self, task: int, emit: Callable[[Any], T]) -> T:
        """Let the emitter of a task emit for a wave; as `call`."""
        if self._cancelled:
            raise CallAbandoned("the wave was cancelled")
        return self.call(task, emit)

    def call(self, task: int, call: Callable[[Any], T], caller: object = None) -> T:
        """Call the emitter of a task where it lives, on behalf of `caller`, and wait; raise what it raises.

        Raises:
            CallAbandoned: `caller` was withdrawn before its turn came.
        """
        emitter = self._of(task)
        thread = emitter.thread
        if thread is None:
            return call(emitter.make())
        if emitter.made is None:
            emitter = self._shared(task, emitter, thread.call(emitter.make, caller))
        assert emitter.thread is not None
        return emitter.thread.call(partial(call, emitter.made), caller)

    def _of(self, task: int) -> _Emitter:
        with self._lock:
            emitter = self._emitters.get(task)
            if emitter is None:
                thread = OwnThread(self._world, f"stormline-emitter-{task}") if self._in_threads else None
                emitter = self._emitters[task] = _Emitter(partial(self._make, task), thread)
            return emitter

    def _shared(self, task: int, emitter: _Emitter, made: Any) -> _Emitter:
        """Return the one that made it first, where a spout gives one object for several tasks."""
        with self._lock:
            for other in self._emitters.values():
                if other.made is made and other is not emitter:
                    assert emitter.thread is not None
                    emitter.thread.close()
                    self._emitters[task] = other
                    return other
            return emitter

    def withdraw(self, caller: object) -> None:
        """Drop the calls of `caller` that have not begun."""
        for emitter in self._distinct():
            if emitter.thread is not None:
                emitter.thread.withdraw(caller)

    def running(self) -> list[tuple[int, float, Thread]]:
        """Return whose emitters are in a call now: (task, monotonic time at which it began, thread)."""
        with self._lock:
            emitters = list(self._emitters.items())
        found = [(task, e.thread.running_since(), e.thread.thread) for task, e in emitters if e.thread is not None]
        return [(task, since, thread) for task, since, thread in found if since is not None]

    def threads(self) -> list[Thread]:
        """Return the threads in which emitters are called."""
        return [emitter.thread.thread for emitter in self._distinct() if emitter.thread is not None]

    def _distinct(self) -> list[_Emitter]:
        with self._lock:
            return list(dict.fromkeys(self._emitters.values()))

    def closes(self) -> list[Callable[[], None]]:
        """Return what closes each emitter, where it lives; all are forgotten."""
        emitters = self._distinct()
        self._emitters = {}
        return [partial(self._close, emitter) for emitter in emitters]

    def _close(self, emitter: _Emitter) -> None:
        if emitter.thread is None:
            emitter.close()
            return
        call = emitter.thread.begin(emitter.close)
        emitter.thread.close()
        call.wait()
