"""Emitters: the emitter of each spout task of a process, and where it is called."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from stormline.runtime.own_thread import CallAbandoned, OwnThread
from stormline.topology.spout_parts import optional

log = logging.getLogger("stormline")

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
            optional(self.made, "close")()


class Emitters:
    """One emitter a spout task, for as long as the process works on the topology.

    In the driver each has a thread of its own. One that hangs is given up, and the spout makes another one. On the
    executors a worker calls its own, in the one thread that it has.

    Args:
        make: makes the emitter of a task.
        in_threads: whether this is the driver.
    """

    def __init__(self, make: Callable[[int], Any], in_threads: bool, spout: str) -> None:
        self._make = make
        self._in_threads = in_threads
        self._spout = spout
        self._emitters: dict[int, _Emitter] = {}
        self._lock = threading.Lock()  # nobody's code runs under it: it may hang
        self._cancelled = False

    def begin_wave(self) -> None:
        """Take note that a wave begins to emit."""
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
            CallAbandoned: it hangs and was given up, or `caller` was withdrawn.
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
                thread = OwnThread(f"stormline-emitter-{task}") if self._in_threads else None
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
        """Take note that `caller` wants no call any more. An emitter that it calls now is given up."""
        for emitter in self._distinct():
            if emitter.thread is not None and emitter.thread.withdraw(caller):
                self._give_up(emitter)

    def give_up_hung(self, secs: float) -> None:
        """Give up emitters whose present call has lasted as long as this."""
        for emitter in self._distinct():
            if emitter.thread is not None and emitter.thread.running_secs() >= secs:
                self._give_up(emitter)

    def _distinct(self) -> list[_Emitter]:
        with self._lock:
            return list(dict.fromkeys(self._emitters.values()))

    def _give_up(self, emitter: _Emitter) -> None:
        assert emitter.thread is not None
        with self._lock:
            tasks = [task for task, other in self._emitters.items() if other is emitter]
            for task in tasks:
                del self._emitters[task]
        log.warning(
            "the emitter of spout %r, task %s, has not come back from a call, which was abandoned; get_emitter makes "
            "another one, which emits what is not committed again",
            self._spout,
            ", ".join(map(str, tasks)),
        )
        emitter.thread.give_up(partial(self._closed, emitter))

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

    def _closed(self, emitter: _Emitter) -> None:
        try:
            emitter.close()
        except BaseException:
            log.exception("closing an emitter of spout %r that had been given up", self._spout)
