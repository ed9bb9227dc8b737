"""P10: what a tuple costs as batches and as partitions grow; linear means that it always costs the same."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from benchmarks.figure import plain, worst_step
from benchmarks.measuring.bench import Bench, alternately
from benchmarks.measuring.lab import Stream
from benchmarks.measuring.settings import PENDING
from benchmarks.topologies.global_count import global_count

BATCHES_BY_TUPLES: Mapping[int, int] = {1_000: 768, 10_000: 256, 100_000: 64, 1_000_000: 8}
"""By the tuples of a batch, how many batches to measure: enough of small ones, equal totals of large ones."""

PARTITIONS = (2, 8, 64)
PARTITIONS_BATCH_TUPLES = 128_000
PARTITIONS_BATCHES = 48


@dataclass(frozen=True, slots=True)
class Size:
    """One size to measure."""

    batch_tuples: int
    partitions: int
    batches: int

    def cost_us(self, stream: Stream) -> float:
        """Return the microseconds a tuple."""
        return 1e6 * stream.run(self.batches) / (self.batches * self.batch_tuples)


def run(bench: Bench) -> None:
    """Measure P10."""
    by_tuples = {tuples: Size(tuples, 2, bench.amount(batches)) for tuples, batches in BATCHES_BY_TUPLES.items()}
    _measure(bench, "P10a", by_tuples, "tuples in a batch")
    batches = bench.amount(PARTITIONS_BATCHES)
    by_partitions = {n: Size(PARTITIONS_BATCH_TUPLES, n, batches) for n in PARTITIONS}
    _measure(bench, "P10b", by_partitions, f"partitions of a batch of {PARTITIONS_BATCH_TUPLES:,}")


def _measure(bench: Bench, key: str, sizes: Mapping[int, Size], what: str) -> None:
    costs: dict[int, list[float]] = {scale: [] for scale in sizes}
    with ExitStack() as stack:
        stack.callback(_record, bench, key, costs, what)
        streams = {scale: stack.enter_context(_submit(bench, size)) for scale, size in sizes.items()}
        for scale, size in sizes.items():
            bench.say(f"warming up, {scale:,} {what}")
            streams[scale].run(min(size.batches, PENDING))
        for number in range(bench.repeats):
            bench.say(f"round {number + 1} of {bench.repeats}, {what}")
            measures = [lambda scale=scale: sizes[scale].cost_us(streams[scale]) for scale in sizes]
            for scale, cost_us in zip(sizes, alternately(number, *measures), strict=True):
                costs[scale].append(cost_us)


def _record(bench: Bench, key: str, costs: Mapping[int, list[float]], what: str) -> None:
    """Take down the rounds that are complete."""
    rounds = min(len(values) for values in costs.values())
    if not rounds:
        return
    costs = {scale: values[:rounds] for scale, values in costs.items()}
    small, large = worst_step(costs)
    for number in range(rounds):
        detail = {f"us_at_{scale}": values[number] for scale, values in costs.items()}
        bench.recorder.pair(key, costs[large][number], costs[small][number], **detail)
    table = ", ".join(f"{scale:,}: {plain(statistics.median(values))}" for scale, values in costs.items())
    bench.recorder.note(
        key,
        f"the worst of all steps, from {small:,} to {large:,} {what}; µs a tuple by {what}: {table}; "
        f"pending {PENDING}, equal totals of the two largest sizes",
    )


def _submit(bench: Bench, size: Size) -> Stream:
    return bench.lab.submit(
        lambda topology_id: global_count(topology_id, size.batch_tuples, partitions=size.partitions), PENDING
    )
