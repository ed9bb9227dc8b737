"""Committers that ask whether something is the very object: a copy is not."""

from __future__ import annotations

import dataclasses
import itertools
import weakref
from collections.abc import Generator
from typing import Any

from tests.holding.holding_bolt import HoldingBolt

NOTHING = object()


class Missing(HoldingBolt):
    """dataclasses.MISSING stands for "none yet"."""

    def hold(self) -> None:
        super().hold()
        self.first: Any = dataclasses.MISSING

    def gather(self, value: int) -> None:
        if self.first is dataclasses.MISSING:
            self.first = value
        else:
            self.values.append(value)

    def gathered(self) -> list[int]:
        return [] if self.first is dataclasses.MISSING else [self.first, *self.values]


class OwnSentinel(HoldingBolt):
    """So does an object of the module's own, within a list."""

    def hold(self) -> None:
        self.slots: list[Any] = [NOTHING] * 100

    def gather(self, value: int) -> None:
        self.slots[value] = value

    def gathered(self) -> list[int]:
        return [value for value in self.slots if value is not NOTHING]


class ByIdentity(HoldingBolt):
    """A dict by id(): the objects have other ids in a copy."""

    def hold(self) -> None:
        self.baskets: tuple[list[int], ...] = ([], [])
        self.known = {id(basket): basket for basket in self.baskets}

    def gather(self, value: int) -> None:
        self.known[id(self.baskets[value % 2])].append(value)

    def gathered(self) -> list[int]:
        return [value for basket in self.baskets for value in self.known[id(basket)]]


class GeneratorThatGathers(HoldingBolt):
    """A generator, which is sent one number after another."""

    def hold(self) -> None:
        self.values = []
        self.adding = self.add()
        next(self.adding)

    def add(self) -> Generator[None, int, None]:
        while True:
            self.values.append((yield))

    def gather(self, value: int) -> None:
        self.adding.send(value)


class Iterators(HoldingBolt):
    """Iterators that know where they are."""

    def hold(self) -> None:
        self.places = itertools.count()
        self.arrived: list[int] = []
        self.unread = iter(self.arrived)
        self.by_place: dict[int, int] = {}

    def gather(self, value: int) -> None:
        self.arrived.append(value)
        self.by_place[next(self.places)] = next(self.unread)

    def gathered(self) -> list[int]:
        assert next(self.places) == len(self.by_place)
        return list(self.by_place.values())


class Basket:
    """Something that can be referred to weakly."""

    def __init__(self) -> None:
        self.values: list[int] = []


class WeakKeys(HoldingBolt):
    """What is known of an object goes with it."""

    def hold(self) -> None:
        self.basket = Basket()
        self.weakly = weakref.ref(self.basket)
        self.counts: weakref.WeakKeyDictionary[Basket, int] = weakref.WeakKeyDictionary({self.basket: 0})

    def gather(self, value: int) -> None:
        basket = self.weakly()
        assert basket is not None
        basket.values.append(value)
        self.counts[basket] += 1

    def gathered(self) -> list[int]:
        assert self.counts[self.basket] == len(self.basket.values)
        return self.basket.values


class Forgetful(Basket):
    """Leaves its numbers out when it is pickled, as caches do."""

    def __getstate__(self) -> dict[str, Any]:
        return {"values": []}


class HeldForgetful(HoldingBolt):
    """Gathers in an object that leaves things out when it is pickled."""

    def hold(self) -> None:
        self.basket = Forgetful()

    def gather(self, value: int) -> None:
        self.basket.values.append(value)

    def gathered(self) -> list[int]:
        return self.basket.values


class ForgetfulItself(HoldingBolt):
    """Leaves its own numbers out when it is pickled."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "values"}


class TaskData(HoldingBolt):
    """Keeps what it gathers in its context."""

    def hold(self) -> None:
        self.context.set_task_data(str(self.attempt), [])

    def gather(self, value: int) -> None:
        self.context.get_task_data(str(self.attempt)).append(value)

    def gathered(self) -> list[int]:
        return list(self.context.get_task_data(str(self.attempt)))


class OutOfConf(HoldingBolt):
    """Keeps what it gathers in a dict out of `conf`."""

    def hold(self) -> None:
        self.cache = self.conf["holding.cache"]
        self.key = (str(self.attempt), self.context.this_task_index)
        self.cache[self.key] = []

    def gather(self, value: int) -> None:
        self.conf["holding.cache"][self.key].append(value)

    def gathered(self) -> list[int]:
        return list(self.cache.pop(self.key))


IDENTITIES: list[type[HoldingBolt]] = [
    Missing,
    OwnSentinel,
    ByIdentity,
    GeneratorThatGathers,
    Iterators,
    WeakKeys,
    HeldForgetful,
    ForgetfulItself,
    TaskData,
    OutOfConf,
]
