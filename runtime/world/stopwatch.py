"""Stopwatch: what a generator works, without the time it waits for its input or its consumer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from stormline.runtime.world.world import World

T = TypeVar("T")


class Stopwatch:
    """Runs between a generator's own steps. Wall time, so that a bolt that waits for a service counts as busy."""

    def __init__(self, world: World) -> None:
        self._monotonic = world.monotonic
        self._total = 0.0
        self._since = 0.0

    def secs(self) -> float:
        """Return the seconds so far; asked from within the generator."""
        return self._total + self._monotonic() - self._since

    def _start(self) -> None:
        self._since = self._monotonic()

    def _stop(self) -> None:
        self._total = self.secs()

    def outside(self, generator: Iterator[T]) -> Iterator[T]:
        """Give what the generator gives, with the watch running while it works."""
        self._start()
        for item in generator:
            self._stop()
            yield item
            self._start()

    def inside(self, incoming: Iterable[T]) -> Iterator[T]:
        """Give the generator its input, with the watch stopped while it waits."""
        self._stop()
        for item in incoming:
            self._start()
            yield item
            self._stop()
        self._start()
