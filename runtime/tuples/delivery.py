"""Delivery: tuples that one task sent to another over one edge."""

from __future__ import annotations

from typing import Any, NamedTuple

from stormline.runtime.tuples.columns import Tuples
from stormline.runtime.tuples.packing import Packed


class Delivery(NamedTuple):
    """Tuples of one attempt, in order; as bytes where they cross, or wait, between processes.

    `edge` is its index in the plan.
    """

    edge: int
    source_task: int
    target_task: int
    tuples: Tuples | Packed

    def __reduce__(self) -> tuple[type[Delivery], tuple[Any, ...]]:
        return Delivery, tuple(self)  # a named tuple's own way takes thrice as long

    @property
    def rows(self) -> int:
        """How many tuples it holds."""
        return self.tuples.rows if isinstance(self.tuples, Packed) else len(self.tuples)
