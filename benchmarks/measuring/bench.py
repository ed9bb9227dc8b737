"""Bench: what a row is given to measure with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from benchmarks.measuring.lab import Lab
from benchmarks.measuring.recorder import Recorder

T = TypeVar("T")

QUICK_DIVISOR = 8


@dataclass(slots=True)
class Bench:
    """One run of the benchmarks.

    `repeats`: pairs of a figure. `kills`: of each driver that is killed. `quick`: amounts are cut, so that figures say
    little. `say`: shows what is going on.
    """

    lab: Lab
    recorder: Recorder
    repeats: int = 5
    kills: int = 10
    quick: bool = False
    say: Callable[[str], None] = field(default=lambda text: None)

    def amount(self, number: int) -> int:
        """Return how many of something to take: `number`, less where it is to be quick."""
        return max(1, number // QUICK_DIVISOR) if self.quick else number


def alternately(number: int, *measures: Callable[[], T]) -> list[T]:
    """Take measurements one after another, every other round (by its `number`) in reverse; return them in order.

    What drifts slowly then favours neither side.
    """
    order = range(len(measures)) if number % 2 == 0 else reversed(range(len(measures)))
    taken = {i: measures[i]() for i in order}
    return [taken[i] for i in range(len(measures))]
