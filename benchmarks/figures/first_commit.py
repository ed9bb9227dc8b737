"""P11: `stormline run` until the first commit, against a bare SparkContext and one job; fresh processes both."""

from __future__ import annotations

import sys

from benchmarks.measuring.bench import Bench, alternately
from benchmarks.measuring.fresh import secs_until
from benchmarks.measuring.settings import CORES, MASTER
from benchmarks.topologies.first_commit import COMMITTED

RUN = (
    sys.executable,
    *("-m", "stormline.cli.main", "run", "benchmarks.topologies.first_commit"),
    *("--fresh", "--master", MASTER, "--progress", "none"),
)

BARE_DONE = "the job is done"
# Without its web UI, as Stormline runs it: the figure is not to gain by that.
BARE = f"""\
from pyspark import SparkConf, SparkContext

conf = SparkConf().setAppName("bare").setMaster("{MASTER}").set("spark.ui.enabled", "false")
sc = SparkContext(conf=conf.set("spark.driver.host", "127.0.0.1").set("spark.driver.bindAddress", "127.0.0.1"))
sc.parallelize(range({CORES}), {CORES}).mapPartitions(lambda numbers: numbers).collect()
print("{BARE_DONE}", flush=True)
sc.stop()
"""


def run(bench: Bench) -> None:
    """Measure P11."""
    bench.say("ending Spark")
    bench.lab.close()  # its JVM would take part
    for number in range(bench.repeats):
        ours, theirs = alternately(
            number,
            lambda: secs_until(COMMITTED, RUN),
            lambda: secs_until(BARE_DONE, (sys.executable, "-c", BARE)),
        )
        bench.recorder.pair("P11", ours, theirs)
    bench.recorder.note(
        "P11", "both from the start of the process; GlobalCount, one batch of 1,000 tuples, embedded ZooKeeper"
    )
