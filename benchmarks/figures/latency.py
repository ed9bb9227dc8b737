"""P7: how long one transaction takes, one at a time, against an empty Spark job."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from benchmarks.figure import percentile
from benchmarks.measuring.bench import Bench, alternately
from benchmarks.topologies.global_count import global_count

if TYPE_CHECKING:
    from pyspark import SparkContext

BATCH_TUPLES = 1_000
SLICE = 40


def nothing(numbers: Iterable[int]) -> Iterator[int]:
    """Do nothing, in a Spark task."""
    return iter(())


def empty_jobs(sc: SparkContext, number: int, tasks: int) -> list[float]:
    """Run empty jobs of one stage; return the seconds of each."""
    secs: list[float] = []
    for _ in range(number):
        begun = time.perf_counter()
        sc.parallelize(range(tasks), tasks).mapPartitions(nothing).collect()
        secs.append(time.perf_counter() - begun)
    return secs


def tasks_of_newest_job(sc: SparkContext) -> list[int]:
    """Return the number of tasks of each stage of the newest job. Spark numbers its jobs from 0."""
    tracker = sc.statusTracker()
    job, step = -1, 1_024
    while step:
        while tracker.getJobInfo(job + step) is not None:
            job += step
        step //= 2
    info = tracker.getJobInfo(job)
    assert info is not None
    stages = [tracker.getStageInfo(stage) for stage in info.stageIds]
    return [stage.numTasks for stage in stages if stage is not None]


def run(bench: Bench) -> None:
    """Measure P7."""
    size = bench.amount(SLICE)
    all_ours: list[float] = []
    all_theirs: list[float] = []
    with bench.lab.submit(lambda topology_id: global_count(topology_id, BATCH_TUPLES), 1) as stream:
        bench.say("warming up")
        stream.latencies(20)
        stages = tasks_of_newest_job(bench.lab.spark)
        tasks = max(stages)
        empty_jobs(bench.lab.spark, 20, tasks)
        for number in range(bench.repeats):
            ours, theirs = alternately(
                number, lambda: stream.latencies(size), lambda: empty_jobs(bench.lab.spark, size, tasks)
            )
            all_ours += ours
            all_theirs += theirs
            bench.recorder.pair(
                "P7",
                1_000 * percentile(ours, 50),
                1_000 * percentile(theirs, 50),
                p99_ms=[1_000 * percentile(ours, 99), 1_000 * percentile(theirs, 99)],
                ms=[[round(1_000 * secs, 2) for secs in ours], [round(1_000 * secs, 2) for secs in theirs]],
            )
    ours_99, theirs_99 = (1_000 * percentile(secs, 99) for secs in (all_ours, all_theirs))
    bench.recorder.note(
        "P7",
        f"pending 1; p99 of all {len(all_ours)} transactions {ours_99:.0f} ms, of as many empty jobs "
        f"{theirs_99:.0f} ms; a wave's job has {len(stages)} stage(s) of {stages} tasks, the empty job {tasks} task(s)",
    )
