"""Figures: pairs of measurements, the ratio they give, and the goal it has to reach. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


@dataclass(frozen=True, slots=True)
class Goal:
    """What a ratio must reach. `key` is unique; figures of one row share `row`."""

    key: str
    row: str
    measured: str
    against: str
    unit: str
    bound: float
    at_most: bool = False

    def reached(self, ratio: float) -> bool:
        """Return whether a ratio is good enough."""
        return ratio <= self.bound if self.at_most else ratio >= self.bound

    def score(self, ratio: float) -> float:
        """Return how many times as good as the goal a ratio is: 1 is just enough, whatever the goal's direction."""
        return self.bound / ratio if self.at_most else ratio / self.bound

    @property
    def text(self) -> str:
        """The goal as the tables show it."""
        return f"{'≤' if self.at_most else '≥'} {self.bound:g}"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two measurements, one right after the other. `detail` holds whatever else they told."""

    ours: float
    theirs: float
    detail: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """What was measured, over what it was measured against."""
        return self.ours / self.theirs


class Status(StrEnum):
    """How far a figure came."""

    WAITING = "waiting"
    MEASURED = "measured"
    FAILED = "failed"
    NOT_AVAILABLE = "not available"
    LEFT_OUT = "left out"
    INTERRUPTED = "interrupted"


@dataclass(slots=True)
class Figure:
    """One figure of one row. Where it has no pairs, `reason` says why."""

    goal: Goal
    status: Status = Status.WAITING
    pairs: list[Pair] = field(default_factory=list)
    reason: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def ratios(self) -> list[float]:
        """The ratio of each pair."""
        return [pair.ratio for pair in self.pairs]

    @property
    def ratio(self) -> float | None:
        """The median ratio; None where nothing was measured."""
        return statistics.median(self.ratios) if self.pairs else None

    @property
    def ours(self) -> float | None:
        """The median of what was measured."""
        return statistics.median(pair.ours for pair in self.pairs) if self.pairs else None

    @property
    def theirs(self) -> float | None:
        """The median of what it was measured against."""
        return statistics.median(pair.theirs for pair in self.pairs) if self.pairs else None

    @property
    def reached(self) -> bool | None:
        """Whether the goal is reached; None where that cannot be told."""
        if self.ratio is None or self.status is not Status.MEASURED:
            return None
        return self.goal.reached(self.ratio)

    def to_data(self) -> dict[str, Any]:
        """Return this as plain values, for JSON."""
        return {
            "goal": asdict(self.goal),
            "status": self.status.value,
            "reason": self.reason,
            "ratio": self.ratio,
            "ratio_min": min(self.ratios, default=None),
            "ratio_max": max(self.ratios, default=None),
            "reached": self.reached,
            "notes": list(self.notes),
            "pairs": [asdict(pair) for pair in self.pairs],
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Figure:
        """Return the figure that `to_data` gave `data` for; medians are taken anew."""
        return cls(
            Goal(**data["goal"]),
            Status(data["status"]),
            [Pair(pair["ours"], pair["theirs"], pair.get("detail", {})) for pair in data["pairs"]],
            data["reason"],
            list(data["notes"]),
        )


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that at least `percent` of all values do not exceed (nearest rank)."""
    ordered = sorted(values)
    rank = -(-len(ordered) * percent // 100)
    return ordered[max(0, int(rank) - 1)]


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the least-squares slope of y over x; 0 where all x are the same."""
    mean_x = statistics.fmean(x for x, _ in points)
    mean_y = statistics.fmean(y for _, y in points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0


def worst_step(costs: Mapping[int, Sequence[float]]) -> tuple[int, int]:
    """Return the step from one size to a greater one whose cost departs most from linear.

    Args:
        costs: by size, what one unit of it cost in each round. Linear means the same for all sizes.

    The median over the rounds is taken of each step's ratio, and then the worst step of all: the worst of each
    round would rise with the noise.
    """
    sizes = sorted(costs)
    steps = [(small, large) for i, small in enumerate(sizes) for large in sizes[i + 1 :]]
    return max(steps, key=lambda step: statistics.median(step_ratios(costs, *step)))


def step_ratios(costs: Mapping[int, Sequence[float]], small: int, large: int) -> list[float]:
    """Return, for each round, the cost of a unit at the large size over that at the small one."""
    return [b / a for a, b in zip(costs[small], costs[large], strict=True)]


def plain(number: float) -> str:
    """Write a number with three significant digits, and thousands with commas."""
    if abs(number) >= 100:
        return f"{number:,.0f}"
    if abs(number) >= 10:
        return f"{number:.1f}"
    if abs(number) >= 1:
        return f"{number:.2f}"
    return f"{number:.3g}"
