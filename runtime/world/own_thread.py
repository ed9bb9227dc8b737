"""OwnThread: user code that Storm ran in one long-lived thread runs in one here: made, called and closed in it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from stormline.runtime.world.thread_stack import waiting_for
from stormline.runtime.world.world import Condition, World
from stormline.topology.errors import FailedException

T = TypeVar("T")


class CallAbandoned(FailedException):
    """A call of user code that had not begun was taken back: what it was for has ended."""


class Call(Generic[T]):
    """A call that waits for its turn in a thread, runs, or has ended."""

    def __init__(self, work: Callable[[], T], caller: object, changed: Condition, thread: int | None) -> None:
        self.work = work
        self.caller = caller
        self.begun: float | None = None
        self.ended = False
        self.abandoned = False
        self.result: T | None = None
        self.error: BaseException | None = None
        self._changed = changed
        self._thread = thread

    def wait(self) -> T:
        """Wait for the end of the call; return what it returned, or raise what it raised.

        Raises:
            CallAbandoned: it was taken back before it began.
        """
        with self._changed, waiting_for(self._thread):
            while not (self.ended or self.abandoned):
                self._changed.wait()
        if self.abandoned:
            raise CallAbandoned("the call was abandoned")
        if self.error is not None:
            raise self.error
        return cast(T, self.result)


class OwnThread:
    """Runs calls one after another, in the order in which they were asked for. No lock is held in them.

    A thread cannot be killed, and another call beside one that is merely slow would be worse than none: so all wait for
    a call that hangs. The thread never keeps the process from ending.
    """

    def __init__(self, world: World, name: str) -> None:
        self._world = world
        self._changed = world.condition()
        self._calls: deque[Call[Any]] = deque()  # the first of them runs, or is about to
        self._closed = False
        self.thread = world.start_thread(name, self._work)

    def begin(self, work: Callable[[], T], caller: object = None) -> Call[T]:
        """Let the thread run `work` when its turn comes, on behalf of `caller`."""
        call = Call(work, caller, self._changed, self.thread.ident)
        with self._changed:
            call.abandoned = self._closed
            if not call.abandoned:
                self._calls.append(call)
                self._changed.notify_all()
        return call

    def call(self, work: Callable[[], T], caller: object = None) -> T:
        """Run `work` in the thread, and wait for it; as `Call.wait`."""
        return self.begin(work, caller).wait()

    def withdraw(self, caller: object) -> None:
        """Take back the calls of `caller` that have not begun."""
        with self._changed:
            for call in [call for call in self._calls if call.caller is caller and call.begun is None]:
                self._calls.remove(call)
                call.abandoned = True
            self._changed.notify_all()

    def running_since(self) -> float | None:
        """Return the monotonic time at which the present call began; None: none runs."""
        with self._changed:
            return self._calls[0].begun if self._calls else None

    def close(self) -> None:
        """Let the thread end when all that was asked for has been done."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _next(self) -> Call[Any] | None:
        with self._changed:
            while not (self._calls or self._closed):
                self._changed.wait()
            if not self._calls:
                return None
            self._calls[0].begun = self._world.monotonic()
            return self._calls[0]

    def _work(self) -> None:
        while (call := self._next()) is not None:
            try:
                call.result = call.work()
            except BaseException as error:  # whoever waits for it is told
                call.error = error
            with self._changed:
                self._calls.popleft()
                call.ended = True
                self._changed.notify_all()
                del call  # all that it was called with, and what it gave, would else live until the next one
