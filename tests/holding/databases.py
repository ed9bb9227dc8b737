"""Committers whose database is an object of the driver's process: each reaches it in another way."""

from __future__ import annotations

import functools
import logging
import sys
import weakref
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar

from tests.holding.holding_bolt import DRIVER, HoldingBolt

sys.path.append(str(Path(__file__).with_name("site")))  # a library is installed beside the user's code, not within it
import vendor_registry  # type: ignore[import-not-found]
from vendor_registry import Database


class InDriver(HoldingBolt):
    """Its database is in the driver's process, so it commits there."""

    placements = (DRIVER,)


class FromRegistry(InDriver):
    """`self.db = registry.get("db")`, of an installed library."""

    def hold(self) -> None:
        super().hold()
        self.db = vendor_registry.get("db")

    def store(self, txid: int, task: int, numbers: list[int]) -> None:
        self.db.add(txid, task, numbers)

    @classmethod
    def stored(cls, directory: Path) -> list[int]:
        return list(vendor_registry.get("db").numbers())


class ByBoundMethod(InDriver):
    """Keeps no more than a method of the database."""

    def hold(self) -> None:
        super().hold()
        self.add = vendor_registry.get("bound").add

    def store(self, txid: int, task: int, numbers: list[int]) -> None:
        self.add(txid, task, numbers)

    @classmethod
    def stored(cls, directory: Path) -> list[int]:
        return list(vendor_registry.get("bound").numbers())


def _adding(add: Any) -> Any:
    def with_transaction(txid: int) -> Any:
        def added(task: int, numbers: list[int]) -> None:
            add(txid, task, numbers)

        return added

    return with_transaction


class ByClosureInClosure(InDriver):
    """The database stands in a closure that stands in a closure."""

    def hold(self) -> None:
        super().hold()
        self.add = _adding(vendor_registry.get("closure").add)(self.attempt.transaction_id)

    def store(self, txid: int, task: int, numbers: list[int]) -> None:
        self.add(task, numbers)

    @classmethod
    def stored(cls, directory: Path) -> list[int]:
        return list(vendor_registry.get("closure").numbers())


class ByWeakReference(InDriver):
    """Holds the database weakly: its owner is the library."""

    def hold(self) -> None:
        super().hold()
        self.db = weakref.ref(vendor_registry.get("weak"))

    def store(self, txid: int, task: int, numbers: list[int]) -> None:
        db = self.db()
        assert db is not None
        db.add(txid, task, numbers)

    @classmethod
    def stored(cls, directory: Path) -> list[int]:
        return list(vendor_registry.get("weak").numbers())


STATIC_MAP: dict[tuple[int, int], list[int]] = {}


class StaticMap(InDriver):
    """storm-starter's way: a dict of the module, by its name."""

    def store(self, txid: int, task: int, numbers: list[int]) -> None:
        STATIC_MAP.setdefault((txid, task), numbers)

    @classmethod
    def stored(cls, directory: Path) -> list[int]:
        return sorted(number for numbers in STATIC_MAP.values() for number in numbers)


class ClassAttribute(InDriver):
    """Counts in its class, tuple by tuple, and keeps in its class which attempt counted how many."""

    counted: ClassVar[dict[Any, list[int]]] = {}
    total: ClassVar[dict[tuple[int, int], list[int]]] = {}

    def hold(self) -> None:
        self.counted[self.attempt, self.context.this_task_index] = []

    def gather(self, value: int) -> None:
        ClassAttribute.counted[self.attempt, self.context.this_task_index].append(value)

    def gathered(self) -> list[int]:
        return self.counted.pop((self.attempt, self.context.this_task_index))

    def store(self, txid: int, task: int, numbers: list[int]) -> None:
        self.total.setdefault((txid, task), numbers)

    @classmethod
    def stored(cls, directory: Path) -> list[int]:
        return sorted(number for numbers in cls.total.values() for number in numbers)


class Singleton(type):
    """Makes one object of each class."""

    made: ClassVar[dict[type, Any]] = {}

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls not in cls.made:
            cls.made[cls] = super().__call__(*args, **kwargs)
        return cls.made[cls]


class OneDatabase(Database, metaclass=Singleton):
    """There is one; a copy would be a second one."""


class SingletonByMetaclass(InDriver):
    """`self.db = OneDatabase()`, wherever it is written."""

    def hold(self) -> None:
        super().hold()
        self.db = OneDatabase()

    def store(self, txid: int, task: int, numbers: list[int]) -> None:
        self.db.add(txid, task, numbers)

    @classmethod
    def stored(cls, directory: Path) -> list[int]:
        return list(OneDatabase().numbers())


@functools.cache
def _connect(name: str) -> Database:
    return Database()


class CachedFunction(InDriver):
    """Connects by a function that is cached: there is one connection for each name."""

    def hold(self) -> None:
        super().hold()
        self.db = _connect("main")

    def store(self, txid: int, task: int, numbers: list[int]) -> None:
        self.db.add(txid, task, numbers)

    @classmethod
    def stored(cls, directory: Path) -> list[int]:
        return list(_connect("main").numbers())


class Shard(Enum):
    """Members with state, which pickle by name alone."""

    EVEN = 0
    ODD = 1

    def __init__(self, number: int) -> None:
        self.database = Database()


class EnumWithState(InDriver):
    """Two databases, one for even numbers and one for odd ones."""

    def hold(self) -> None:
        super().hold()
        self.shards = {shard.value: shard for shard in Shard}

    def store(self, txid: int, task: int, numbers: list[int]) -> None:
        for remainder, shard in self.shards.items():
            shard.database.add(txid, task, [number for number in numbers if number % 2 == remainder])

    @classmethod
    def stored(cls, directory: Path) -> list[int]:
        return sorted(number for shard in Shard for number in shard.database.numbers())


class Audit(logging.Handler):
    """Keeps what is logged, as a database does."""

    def __init__(self) -> None:
        super().__init__()
        self.database = Database()

    def emit(self, record: logging.LogRecord) -> None:
        assert isinstance(record.args, tuple)
        self.database.add(*record.args)


AUDIT = Audit()


class LoggingHandler(InDriver):
    """Hands its numbers to a handler of the program's."""

    def hold(self) -> None:
        super().hold()
        self.logger = logging.getLogger("tests.holding.audit")
        self.logger.setLevel(logging.INFO)
        self.logger.propagate = False
        self.logger.addHandler(AUDIT)

    def store(self, txid: int, task: int, numbers: list[int]) -> None:
        self.logger.info("transaction %d, task %d: %s", txid, task, numbers)

    @classmethod
    def stored(cls, directory: Path) -> list[int]:
        return list(AUDIT.database.numbers())


DATABASES: list[type[HoldingBolt]] = [
    FromRegistry,
    ByBoundMethod,
    ByClosureInClosure,
    ByWeakReference,
    StaticMap,
    ClassAttribute,
    SingletonByMetaclass,
    CachedFunction,
    EnumWithState,
    LoggingHandler,
]


def empty_databases() -> None:
    """Empty all databases of this process."""
    vendor_registry.forget()
    STATIC_MAP.clear()
    ClassAttribute.counted.clear()
    ClassAttribute.total.clear()
    Singleton.made.clear()
    _connect.cache_clear()
    for database in (*(shard.database for shard in Shard), AUDIT.database):
        database.stored.clear()
