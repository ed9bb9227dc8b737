"""CommitThreads: one long-lived thread for each task of a deferred bolt that finishes in the driver."""

from __future__ import annotations

import threading
from collections.abc import Callable

from stormline.runtime.world.own_thread import Call, OwnThread
from stormline.runtime.world.world import Thread, World

COMMIT_THREADS_MAX = 64
"""Tasks beyond so many share threads: task i has thread i mod 64."""


class CommitThreads:
    """The threads of one topology's bolt tasks in the driver. A task is always called in the same one."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._threads: dict[int, OwnThread] = {}
        self._lock = threading.Lock()

    def begin(self, task: int, work: Callable[[], None], caller: object) -> Call[None]:
        """Let a task's thread run `work`, on behalf of `caller`."""
        index = task % COMMIT_THREADS_MAX
        with self._lock:
            thread = self._threads.get(index)
            if thread is None:
                thread = self._threads[index] = OwnThread(self._world, f"stormline-commit-{index}")
        return thread.begin(work, caller)

    def run(self, task: int, work: Callable[[], None]) -> None:
        """Run `work` in a task's thread if it has one, else in the calling thread; wait for it."""
        with self._lock:
            thread = self._threads.get(task % COMMIT_THREADS_MAX)
        if thread is None:
            work()
        else:
            thread.call(work)

    def threads(self) -> list[Thread]:
        """Return the threads in which tasks are called."""
        with self._lock:
            return [own.thread for own in self._threads.values()]

    def close(self) -> None:
        """Let the threads end."""
        with self._lock:
            for thread in self._threads.values():
                thread.close()
            self._threads = {}
