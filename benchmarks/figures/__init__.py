"""The figures: each module measures the figures of one row, or of a few that are measured together."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.measuring.bench import Bench


@dataclass(frozen=True, slots=True)
class Run:
    """Rows that one module measures."""

    rows: tuple[str, ...]
    module: str

    def __call__(self, bench: Bench) -> None:
        """Measure them."""
        run: Callable[[Bench], None] = importlib.import_module(f"benchmarks.figures.{self.module}").run
        run(bench)


RUNS: tuple[Run, ...] = (
    Run(("P1",), "global_count"),
    Run(("P2",), "words"),
    Run(("P3",), "small_batches"),
    Run(("P7",), "latency"),
    Run(("P8",), "columnar"),
    Run(("P9",), "endurance"),
    Run(("P10",), "linear"),
    Run(("P4", "P5", "P6"), "peers"),
    Run(("S1", "S2"), "stored_counts"),
    Run(("S3", "S4"), "stored_keys"),
    Run(("S5",), "stored_words"),
    Run(("K1", "K2"), "kafka_counts"),
    Run(("K3",), "kafka_stored"),
    Run(("K4",), "kafka_latency"),
    Run(("K5",), "kafka_commits"),
    Run(("T1", "T2"), "prepared_loads"),
    Run(("P11",), "first_commit"),
    Run(("S6",), "killed_driver"),
)
