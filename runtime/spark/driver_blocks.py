"""GivenBlocks: how blocks that were made in the driver come to the first Spark stage of a wave."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

from pyspark import RDD, Broadcast, SparkContext

from stormline.runtime.processing.stage_runner import SlotBlock

IN_TASKS_BYTES_MAX = 1 << 24
"""Blocks of no more travel within the tasks, which the driver's JVM holds several times; others by broadcast, in files
and pieces, for some 20 ms more a slot."""


class GivenBlocks:
    """The blocks of one wave at a time; `forget` frees them."""

    def __init__(self, sc: SparkContext) -> None:
        self._sc = sc
        self._broadcasts: list[Broadcast[Any]] = []

    def to_slots(self, given: list[SlotBlock], slots: int) -> RDD[Any]:
        """Return an RDD that holds in each partition the blocks for that slot."""
        by_slot = [[block for block in given if block[0] % slots == slot] for slot in range(slots)]
        if sum(len(data) for _, data in given) <= IN_TASKS_BYTES_MAX:
            return self._sc.parallelize(by_slot, slots).flatMap(list)
        self._broadcasts = [self._sc.broadcast(blocks) for blocks in by_slot]
        return self._sc.parallelize(range(slots), slots).flatMap(_Of(self._broadcasts))

    def forget(self) -> None:
        """Free what has been broadcast."""
        broadcasts, self._broadcasts = self._broadcasts, []
        for broadcast in broadcasts:
            with contextlib.suppress(Exception):  # Spark has ended, and they with it
                broadcast.destroy()


class _Of:
    """Gives the blocks of one slot."""

    def __init__(self, broadcasts: list[Broadcast[Any]]) -> None:
        self._broadcasts = broadcasts

    def __call__(self, slot: int) -> Iterable[SlotBlock]:
        blocks: list[SlotBlock] = self._broadcasts[slot].value
        return blocks
