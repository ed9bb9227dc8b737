"""Readings: what metrics have counted, as values that are put together on their way to the driver."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

GAMMA = 1.02
"""Ratio of the bounds of a histogram's bucket: a percentile is right to half of the 2 %."""

PERCENTILES = (50, 95, 99)


class Reading(Protocol):
    """What one metric has counted. Immutable."""

    def merged(self, later: Any) -> Reading:
        """Return both together; `later` is of the same kind."""

    def value(self, elapsed_secs: float) -> Any:
        """Return what a person reads, so long after the start."""


K = TypeVar("K")


def _added(one: Mapping[K, int], other: Mapping[K, int]) -> dict[K, int]:
    return {key: one.get(key, 0) + other.get(key, 0) for key in [*one, *(other.keys() - one.keys())]}


Readings = dict[tuple[str, str], Reading]
"""By component and name."""


def merge_into(readings: Readings, more: Mapping[tuple[str, str], Reading]) -> None:
    """Put later readings into earlier ones. Where a name has become another kind of metric, the later one stays."""
    for key, reading in more.items():
        before = readings.get(key)
        readings[key] = before.merged(reading) if type(before) is type(reading) else reading


@dataclass(frozen=True, slots=True)
class Total:
    """A count."""

    count: int

    def merged(self, later: Total) -> Total:
        return Total(self.count + later.count)

    def value(self, elapsed_secs: float) -> int:
        return self.count


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts by key."""

    counts: Mapping[str, int]

    def merged(self, later: Totals) -> Totals:
        return Totals(_added(self.counts, later.counts))

    def value(self, elapsed_secs: float) -> dict[str, int]:
        return dict(self.counts)


@dataclass(frozen=True, slots=True)
class Rate:
    """A count, of which the rate is asked."""

    count: int

    def merged(self, later: Rate) -> Rate:
        return Rate(self.count + later.count)

    def value(self, elapsed_secs: float) -> dict[str, float]:
        return {"count": self.count, "mean_rate": round(self.count / max(elapsed_secs, 1e-9), 3)}


@dataclass(frozen=True, slots=True)
class Latest:
    """A value that the next one replaces."""

    latest: Any

    def merged(self, later: Latest) -> Latest:
        return later

    def value(self, elapsed_secs: float) -> Any:
        return self.latest


@dataclass(frozen=True, slots=True)
class Folded:
    """What an `IReducer` has folded."""

    reducer: Any
    accumulator: Any

    def merged(self, later: Folded) -> Folded:
        return Folded(later.reducer, later.reducer.merge(self.accumulator, later.accumulator))

    def value(self, elapsed_secs: float) -> Any:
        return self.reducer.extract_result(self.accumulator)


@dataclass(frozen=True, slots=True)
class Distribution:
    """How values are spread: how many there are in each bucket, whose bounds grow by `GAMMA`.

    Bucket 0 holds zeros; n ≥ 1 and n ≤ -1 hold positive and negative values by their size, offset so that each has its
    own number.
    """

    count: int
    total: float
    least: float
    greatest: float
    buckets: Mapping[int, int]

    @classmethod
    def of(cls, values: Sequence[float]) -> Distribution:
        """Return that of some finite values, at least one."""
        buckets: dict[int, int] = {}
        for value in values:
            bucket = _bucket(value)
            buckets[bucket] = buckets.get(bucket, 0) + 1
        return cls(len(values), float(sum(values)), min(values), max(values), buckets)

    def merged(self, later: Distribution) -> Distribution:
        return Distribution(
            self.count + later.count,
            self.total + later.total,
            min(self.least, later.least),
            max(self.greatest, later.greatest),
            _added(self.buckets, later.buckets),
        )

    def value(self, elapsed_secs: float) -> dict[str, float]:
        shown = {"count": self.count, "mean": self.total / self.count, "min": self.least, "max": self.greatest}
        return {**shown, **{f"p{percent}": self._percentile(percent) for percent in PERCENTILES}}

    def _percentile(self, percent: int) -> float:
        wanted, seen = self.count * percent / 100, 0
        for bucket in sorted(self.buckets):
            seen += self.buckets[bucket]
            if seen >= wanted:
                return min(max(_middle(bucket), self.least), self.greatest)
        raise AssertionError("the buckets hold all values")


_OFFSET = 40_000  # more than log(1e308) / log(GAMMA): sizes below 1 have buckets above 0, too


def _bucket(value: float) -> int:
    if value == 0:
        return 0
    size = math.ceil(math.log(abs(value)) / math.log(GAMMA)) + _OFFSET
    return size if value > 0 else -size


def _middle(bucket: int) -> float:
    if bucket == 0:
        return 0.0
    size = math.exp(min((abs(bucket) - _OFFSET) * math.log(GAMMA), 709.0)) * 2 / (1 + GAMMA)
    return size if bucket > 0 else -size
