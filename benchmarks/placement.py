"""Commits on the driver against commits on the executors: heavy ones, and small ones.

    python -m benchmarks.placement [--repeats 5] [--commits 5] [--secs 5]

*Heavy*: a committer with 2 tasks, each of which computes for a second of CPU in `finish_batch`: seconds a commit. On
the driver the tasks are threads of one Python process and take turns; on the executors they are processes, at the
price of a Spark job a commit. *Small*: GlobalCount with 9 tuples a transaction and 64 pending: transactions a second.

One Spark and one embedded ZooKeeper serve all runs; the placements take turns. Commits have no effects, so that the
engine is what is measured. On a machine with fewer than 2 free cores the tasks of a heavy commit take turns anywhere.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from benchmarks.measuring.bench import alternately
from benchmarks.measuring.settings import MASTER, TIMEOUT_SECS
from benchmarks.topologies.synthetic import GATES, Gate, SyntheticSpout
from examples.global_count import BatchCount
from stormline import BaseTransactionalBolt, Config, ICommitter, LocalCluster, TransactionalTopologyBuilder
from stormline.topology.topology import Topology

PLACEMENTS = ("driver", "executors")
HEAVY_TASKS = 2
HEAVY_CPU_SECS = 1.0
SMALL_PENDING = 64
ENDLESS = 10**9


def work(loops: int) -> int:
    """Compute in plain Python, holding the interpreter."""
    value = 0
    for n in range(loops):
        value = (value * 31 + n) & 0xFFFF
    return value


@cache
def loops_a_cpu_second() -> int:
    """Return how many loops of `work` make a second of CPU here; the median of 5 looks."""
    loops = 5_000_000
    rates = []
    for _ in range(5):
        begun = time.process_time()
        work(loops)
        rates.append(loops / (time.process_time() - begun))
    return int(statistics.median(rates))


class Computes(BaseTransactionalBolt, ICommitter):
    """A committer whose commit is work."""

    gathers = ("sum",)

    def __init__(self, loops: int) -> None:
        self.loops = loops

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        self.sum = 0

    def execute(self, tup: Any) -> None:
        self.sum += tup[1]

    def finish_batch(self) -> None:
        work(self.loops)

    def declare_output_fields(self, declarer: Any) -> None: ...


def topology(topology_id: str, committer: Computes, tasks: int) -> Topology:
    """Build GlobalCount with storm-starter's numbers of tasks, a committer of `tasks` tasks, and no end of batches."""
    GATES[topology_id] = Gate()
    GATES[topology_id].release(ENDLESS)
    builder = TransactionalTopologyBuilder(topology_id, "spout", SyntheticSpout(3, 3), 3)
    builder.set_bolt("partial-count", BatchCount(), 5).none_grouping("spout")
    builder.set_bolt("sum", committer, tasks).shuffle_grouping("partial-count")
    return builder.build_topology()


def measure_heavy(cluster: LocalCluster, placement: str, run: int, commits: int = 5) -> float:
    """Return seconds a heavy commit, from one recorded commit to a later one.

    Args:
        placement: 'driver' or 'executors'.
        run: makes the topology id of this measurement its own.
        commits: over how many commits.
    """
    built = topology(f"heavy-{placement}-{run}", Computes(int(HEAVY_CPU_SECS * loops_a_cpu_second())), HEAVY_TASKS)
    config = {Config.TOPOLOGY_COMMIT_PLACEMENT: placement, Config.TOPOLOGY_MAX_SPOUT_PENDING: commits + 2}
    handle = cluster.submit_topology(built.id, config, built)
    first = handle.await_committed(2, TIMEOUT_SECS)
    begun = time.perf_counter()
    last = handle.await_committed(first + commits, TIMEOUT_SECS)
    secs = time.perf_counter() - begun
    handle.kill()
    return secs / (last - first)


def measure_small(
    cluster: LocalCluster, placement: str, run: int, secs: float = 5.0, pending: int = SMALL_PENDING
) -> float:
    """Return committed transactions a second of GlobalCount with 9 tuples a transaction, once waves are under way.

    Args:
        placement: 'driver' or 'executors'.
        run: makes the topology id of this measurement its own.
        secs: for how long.
        pending: topology.max.spout.pending.
    """
    built = topology(f"small-{placement}-{run}", Computes(0), 1)
    config = {Config.TOPOLOGY_COMMIT_PLACEMENT: placement, Config.TOPOLOGY_MAX_SPOUT_PENDING: pending}
    handle = cluster.submit_topology(built.id, config, built)
    first = handle.await_committed(pending if placement == "driver" else 8, TIMEOUT_SECS)
    begun = time.perf_counter()
    time.sleep(secs)
    rate = (handle.txid_committed - first) / (time.perf_counter() - begun)
    handle.kill()
    return rate


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--commits", type=int, default=5)
    parser.add_argument("--secs", type=float, default=5.0)
    args = parser.parse_args()
    heavy: dict[str, list[float]] = {placement: [] for placement in PLACEMENTS}
    small: dict[str, list[float]] = {placement: [] for placement in PLACEMENTS}
    with LocalCluster(master=MASTER) as cluster:
        for run in range(args.repeats):
            for secs, placement in zip(
                alternately(run, *[partial(measure_heavy, cluster, p, run, args.commits) for p in PLACEMENTS]),
                PLACEMENTS,
                strict=True,
            ):
                heavy[placement].append(secs)
            for rate, placement in zip(
                alternately(run, *[partial(measure_small, cluster, p, run, args.secs) for p in PLACEMENTS]),
                PLACEMENTS,
                strict=True,
            ):
                small[placement].append(rate)
    print(f"{'median (min to max)':28} {'driver':>24} {'executors':>24}  ratio")
    ratio = statistics.median(heavy["driver"]) / statistics.median(heavy["executors"])
    print(f"{'heavy: seconds a commit':28} {_row(heavy, '{:.2f}'.format)}  driver/executors {ratio:.2f}")
    ratio = statistics.median(small["driver"]) / statistics.median(small["executors"])
    print(f"{'small: transactions/s':28} {_row(small, '{:.1f}'.format)}  driver/executors {ratio:.1f}")


def _row(measured: dict[str, list[float]], shown: Callable[[float], str]) -> str:
    texts = (
        f"{shown(statistics.median(values))} ({shown(min(values))} to {shown(max(values))})"
        for values in measured.values()
    )
    return " ".join(f"{text:>24}" for text in texts)


if __name__ == "__main__":
    main()
