"""Committers that gather, from `prepare` to `finish_batch`, in what belongs to a module, a function or a class."""

from __future__ import annotations

import functools
from collections import defaultdict
from typing import Any, ClassVar

from tests.holding.holding_bolt import HoldingBolt

GATHERED: defaultdict[Any, list[int]] = defaultdict(list)


class InModule(HoldingBolt):
    """A dict of the module, by attempt."""

    def hold(self) -> None:
        self.key = (self.attempt, self.context.this_task_index)

    def gather(self, value: int) -> None:
        GATHERED[self.key].append(value)

    def gathered(self) -> list[int]:
        return GATHERED.pop(self.key, [])


@functools.cache
def _basket(txid: int, attempt_id: int, task: int) -> list[int]:
    return []


class InCachedFunction(HoldingBolt):
    """What a cached function has returned."""

    def hold(self) -> None:
        self.key = (self.attempt.transaction_id, self.attempt.attempt_id, self.context.this_task_index)

    def gather(self, value: int) -> None:
        _basket(*self.key).append(value)

    def gathered(self) -> list[int]:
        return _basket(*self.key)


class Counter:
    """A class that counts its objects, as registries do."""

    made: ClassVar[list[Counter]] = []

    def __init__(self) -> None:
        self.values: list[int] = []
        self.number = len(Counter.made)
        Counter.made.append(self)


class KnownToItsClass(HoldingBolt):
    """Finds again by its number what its class knows."""

    def hold(self) -> None:
        self.number = Counter().number

    def gather(self, value: int) -> None:
        Counter.made[self.number].values.append(value)

    def gathered(self) -> list[int]:
        return Counter.made[self.number].values


STATICS: list[type[HoldingBolt]] = [InModule, InCachedFunction, KnownToItsClass]
