"""Committers with threads, and with what belongs to one thread."""

from __future__ import annotations

import contextvars
import queue
import threading
from concurrent.futures import ThreadPoolExecutor

from tests.holding.holding_bolt import HoldingBolt

LOCAL = threading.local()
CURRENT: contextvars.ContextVar[list[int]] = contextvars.ContextVar("current")


class Lock(HoldingBolt):
    """A lock beside the numbers."""

    def hold(self) -> None:
        super().hold()
        self.lock = threading.Lock()

    def gather(self, value: int) -> None:
        with self.lock:
            self.values.append(value)


class Pool(HoldingBolt):
    """A pool of threads that fills `self.answers`."""

    def hold(self) -> None:
        self.answers: list[int] = []
        self.pool = ThreadPoolExecutor(2)

    def answer(self, value: int) -> None:
        self.answers.append(value)

    def gather(self, value: int) -> None:
        self.pool.submit(self.answer, value)

    def gathered(self) -> list[int]:
        self.pool.shutdown(wait=True)
        return self.answers


SHARED_POOL = ThreadPoolExecutor(1)


class SharedPool(HoldingBolt):
    """A pool of the module's, so that all that the bolt itself holds could be pickled."""

    def hold(self) -> None:
        self.answers: list[int] = []

    def gather(self, value: int) -> None:
        SHARED_POOL.submit(self.answers.append, value)

    def gathered(self) -> list[int]:
        SHARED_POOL.submit(int).result()  # its one thread has answered all before
        return self.answers


class OwnThread(HoldingBolt):
    """A thread that takes numbers out of a queue, and is joined."""

    def hold(self) -> None:
        super().hold()
        self.queue: queue.Queue[int | None] = queue.Queue()
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self) -> None:
        while (value := self.queue.get()) is not None:
            self.values.append(value)

    def gather(self, value: int) -> None:
        self.queue.put(value)

    def gathered(self) -> list[int]:
        self.queue.put(None)
        self.thread.join()
        return self.values


class Queue(HoldingBolt):
    """A queue alone."""

    def hold(self) -> None:
        self.queue: queue.SimpleQueue[int] = queue.SimpleQueue()

    def gather(self, value: int) -> None:
        self.queue.put(value)

    def gathered(self) -> list[int]:
        return [self.queue.get_nowait() for _ in range(self.queue.qsize())]


class ThreadLocal(HoldingBolt):
    """What it gathers belongs to the thread of the task."""

    def hold(self) -> None:
        LOCAL.values = []

    def gather(self, value: int) -> None:
        LOCAL.values.append(value)

    def gathered(self) -> list[int]:
        return list(LOCAL.values)


class ContextVariable(HoldingBolt):
    """A contextvar, which a thread that is not told of it does not have."""

    def hold(self) -> None:
        CURRENT.set([])

    def gather(self, value: int) -> None:
        CURRENT.get().append(value)

    def gathered(self) -> list[int]:
        return CURRENT.get()


THREADS: list[type[HoldingBolt]] = [Lock, Pool, SharedPool, OwnThread, Queue, ThreadLocal, ContextVariable]
