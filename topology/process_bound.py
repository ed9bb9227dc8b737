"""What lives in one process and cannot travel: locks, threads, queues, connections, files, generators."""

from __future__ import annotations

from enum import Enum


class ProcessBound(Enum):
    """A kind of it: what to do with one, what else helps, and what travels instead."""

    LOCK = (
        "make",
        "the calls of one task come one after the other, so only threads of its own need a lock",
        "leave it out",
    )
    THREAD = ("start", "keep in __init__() only what it works on", "send what it has worked out")
    QUEUE = ("make", "a queue reaches no other task, so emit what another one needs", "send what it holds, as a list")
    CONNECTION = (
        "open",
        "keep in __init__() only what it is opened with, such as an address",
        "send what it has read, or what it is opened with",
    )
    FILE = ("open", "keep its path in __init__()", "send its path, or what it holds")
    GENERATOR = (
        "make",
        "keep in __init__() only what it is made from, or a list of what it gives",
        "send a list of what it gives",
    )

    def __init__(self, verb: str, hint: str, instead: str) -> None:
        self.verb = verb
        self.hint = hint
        self.instead = instead

    @classmethod
    def of(cls, kind: type) -> ProcessBound | None:
        """Return what objects of `kind` are; None where they may travel, or nothing is known of them."""
        names = (f"{base.__module__}.{base.__qualname__}" for base in kind.__mro__)
        return next((_BY_NAME[name] for name in names if name in _BY_NAME), None)

    @classmethod
    def of_unpicklable(cls, kind: type) -> ProcessBound | None:
        """Return what objects of `kind`, which cannot be pickled, are: what is called a connection then is one."""
        named = any(base.__qualname__.endswith(("Connection", "Cursor")) for base in kind.__mro__)
        return cls.of(kind) or (cls.CONNECTION if named else None)


# By name: to import all of their modules would take longer than the rest of building a topology.
_BY_NAME = {
    name: kind
    for kind, names in {
        ProcessBound.LOCK: (
            "_thread.lock",
            "_thread.RLock",
            "threading._RLock",
            "threading.Condition",
            "threading.Semaphore",
            "threading.Event",
            "threading.Barrier",
            "multiprocessing.synchronize.SemLock",
            "multiprocessing.synchronize.Condition",
            "multiprocessing.synchronize.Event",
        ),
        ProcessBound.THREAD: (
            "threading.Thread",
            "concurrent.futures._base.Executor",
            "multiprocessing.process.BaseProcess",
            "multiprocessing.pool.Pool",
            "subprocess.Popen",
        ),
        ProcessBound.QUEUE: (
            "queue.Queue",
            "_queue.SimpleQueue",
            "multiprocessing.queues.Queue",
            "multiprocessing.queues.SimpleQueue",
        ),
        ProcessBound.CONNECTION: (
            "_socket.socket",
            "multiprocessing.connection._ConnectionBase",
            "sqlite3.Connection",
            "sqlite3.Cursor",
        ),
        ProcessBound.FILE: ("_io._IOBase",),
        ProcessBound.GENERATOR: ("builtins.generator", "builtins.coroutine", "builtins.async_generator"),
    }.items()
    for name in names
}
