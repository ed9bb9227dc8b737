"""Tells where the time of a small transaction goes: python -m benchmarks.spent ROW [--rounds 3]

ROW is a row of the benchmarks: P3 (GlobalCount into memory), S1 and S2 (into SQLite, PostgreSQL), T2 (two-phase commit
into PostgreSQL), K5 (into Kafka, each by itself). Each round prints the time from one commit to the next, and the CPU
that each kind of process took for a transaction. The last line tells what the thread that commits waits for.

What takes the times of calls makes them longer, by some µs each. Numbers of CPU come in steps of 10 ms a process.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import click
import psutil

from benchmarks.figures import kafka_commits, prepared_loads, small_batches, stored_counts
from benchmarks.measuring.lab import Lab, Stream
from benchmarks.measuring.processes import by_kind
from benchmarks.measuring.settings import PATIENT, PENDING_SMALL, WARM_UP_SMALL
from benchmarks.topologies import global_count
from benchmarks.topologies.kafka import written_words
from benchmarks.topologies.prepared import loaded
from benchmarks.topologies.stored import stored_global_count
from stormline.runtime.commit.commit_group import CommitGroup
from stormline.runtime.commit.commit_phase import CommitPhase
from stormline.runtime.coordination.committer import Committer

CALLS = {
    "next commit": (Committer, "_next"),
    "commit phase": (CommitPhase, "run"),
    "commit of a group": (CommitGroup, "commit"),
    "ZooKeeper's record": (Committer, "_write"),
}
"""What is timed in the thread that commits, by the name under which it is told."""


class Watch:
    """The times of calls in the thread that commits, of all topologies of this process."""

    def __init__(self) -> None:
        self.secs: dict[str, list[float]] = {name: [] for name in CALLS}
        for name, (owner, method) in CALLS.items():
            setattr(owner, method, self._timed(name, getattr(owner, method)))

    def _timed(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **more: Any) -> Any:
            begun = time.perf_counter()
            try:
                return call(*args, **more)
            finally:
                self.secs[name].append(time.perf_counter() - begun)

        return timed

    def told(self, transactions: int) -> str:
        """Return for each call how often it came, its median, and its share of a transaction."""
        return "; ".join(
            f"{name}: {len(secs)} times, median {1e6 * statistics.median(secs):.0f} µs, "
            f"{1e6 * sum(secs) / transactions:.0f} µs a transaction"
            for name, secs in self.secs.items()
            if secs
        )


def cpu_secs() -> Counter[str]:
    """Return the CPU that this process and all below it have taken, by kind."""
    spent: Counter[str] = Counter()
    for kind, processes in by_kind().items():
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                spent[kind] += times.user + times.system
    return spent


def submitted(lab: Lab, row: str) -> tuple[Stream, int, Callable[[], object]]:
    """Return a row's topology, the transactions of one of its measurements, and what is done before one."""
    if row == "P3":
        return lab.submit(global_count.small_batches, PENDING_SMALL), small_batches.BATCHES, lambda: None
    if row == "K5":
        servers, topic = lab.brokers.servers, lab.brokers.topic(1)
        build = partial(written_words, servers=servers, topic=topic, batch_tuples=kafka_commits.BATCH_TUPLES)
        return lab.submit(build, PENDING_SMALL, {kafka_commits.GROUP_MAX: 1}), kafka_commits.SINGLE, lambda: None
    if row == "T2":
        store = lab.databases.postgresql()
        table = prepared_loads.LoadedTable(store)
        build = partial(loaded, store=store, batch_tuples=prepared_loads.SMALL, tasks=1)
        stream = lab.submit(build, prepared_loads.PENDING_SMALL, PATIENT)
        return stream, prepared_loads.COMMITS, lambda: table.timed(lambda: 0.0, 0)
    into = lab.databases.sqlite() if row == "S1" else lab.databases.postgresql()
    return lab.submit(partial(stored_global_count, store=into), PENDING_SMALL), stored_counts.BATCHES, lambda: None


@click.command(help=__doc__)
@click.argument("row", type=click.Choice(["P3", "S1", "S2", "T2", "K5"]))
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
def main(row: str, rounds: int) -> None:
    watch = Watch()
    with Lab() as lab:
        stream, transactions, before = submitted(lab, row)
        with stream:
            for _ in range(max(1, WARM_UP_SMALL // transactions)):
                before()
                stream.run(transactions)
            for secs in watch.secs.values():
                secs.clear()
            for _ in range(rounds):
                before()
                cpu = cpu_secs()
                secs_a_round = stream.run(transactions)
                cpu = cpu_secs() - cpu
                each = ", ".join(f"{kind} {1e6 * secs / transactions:.0f}" for kind, secs in cpu.most_common())
                click.echo(
                    f"{row}: {1e6 * secs_a_round / transactions:.0f} µs a transaction; µs of CPU: {each}; "
                    f"{1e6 * cpu.total() / transactions:.0f} in all"
                )
            click.echo(watch.told(rounds * transactions))


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.spent")
