"""SharedEmitter: an emitter that emits in one thread of the driver and commits in another, never both at once."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class SharedEmitter:
    """The calls of one emitter take turns, in the order in which they were asked for. No lock is held in them.

    A commit that is abandoned in its turn may never come back, and would keep the wave's thread waiting for ever: the
    emitter is then given up, nobody has a turn any more, and `TaskEnvironment` has the spout make another one.
    """

    def __init__(self, emitter: Any) -> None:
        self.emitter = emitter
        self.given_up = False
        self._callers: deque[object] = deque()
        self._changed = threading.Condition()

    @contextmanager
    def turn(self, caller: object, wanted: Callable[[], bool]) -> Iterator[bool]:
        """Wait for the caller's turn, which lasts as long as the `with` block.

        False: it does not come, since the emitter was given up, or the turn is `wanted` no more.
        """
        with self._changed:
            self._callers.append(caller)
        try:
            yield self._wait(caller, wanted)
        finally:
            with self._changed:
                self._callers.remove(caller)
                self._changed.notify_all()

    def _wait(self, caller: object, wanted: Callable[[], bool]) -> bool:
        with self._changed:
            while wanted() and not self.given_up and self._callers[0] is not caller:
                self._changed.wait()
            return wanted() and not self.given_up

    def withdraw(self, caller: object) -> None:
        """Take note that a caller wants no turn any more; where it has its turn, the emitter is given up."""
        with self._changed:
            if self._callers and self._callers[0] is caller:
                self.given_up = True
            self._changed.notify_all()

    @property
    def idle(self) -> bool:
        """Whether nobody has a turn, or waits for one."""
        with self._changed:
            return not self._callers
