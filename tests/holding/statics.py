"""Committers that gather, from `prepare` to `finish_batch`, in what belongs to a module, a function or a class."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import Any, ClassVar

from stormline import TransactionAttempt
from tests.holding.holding_bolt import HoldingBolt

GATHERED: dict[Any, list[int]] = {}


class InModule(HoldingBolt):
    """A dict of the module, by attempt."""

    def hold(self) -> None:
        self.key = (self.context.topology_id, self.attempt, self.context.this_task_index)
        GATHERED[self.key] = []

    def gather(self, value: int) -> None:
        GATHERED[self.key].append(value)

    def gathered(self) -> list[int]:
        return GATHERED.pop(self.key)


@functools.cache
def _basket(topology_id: str, attempt: TransactionAttempt, task: int) -> list[int]:
    return []


class InCachedFunction(HoldingBolt):
    """What a cached function has returned."""

    def hold(self) -> None:
        self.key = (self.context.topology_id, self.attempt, self.context.this_task_index)

    def gather(self, value: int) -> None:
        _basket(*self.key).append(value)

    def gathered(self) -> list[int]:
        return _basket(*self.key)


class Counter:
    """A class that counts its objects, as registries do."""

    numbers: ClassVar[Iterator[int]] = itertools.count()
    made: ClassVar[dict[int, Counter]] = {}

    def __init__(self) -> None:
        self.values: list[int] = []
        self.number = next(self.numbers)
        self.made[self.number] = self


class KnownToItsClass(HoldingBolt):
    """Finds again by its number what its class knows."""

    def hold(self) -> None:
        self.number = Counter().number

    def gather(self, value: int) -> None:
        Counter.made[self.number].values.append(value)

    def gathered(self) -> list[int]:
        return Counter.made[self.number].values


STATICS: list[type[HoldingBolt]] = [InModule, InCachedFunction, KnownToItsClass]
