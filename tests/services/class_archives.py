"""`python -m tests.services.class_archives`: make the archives of `tests.services.jvm` that are not there yet."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from pathlib import Path

import psutil

from examples.kafka_broker import KafkaBroker, jars
from tests.services.free_port import free_port
from tests.services.jvm import FOLDER, recording
from tests.services.zookeeper_server import ZooKeeperServer

STOP_SECS = 300.0


def _spark(options: Sequence[str]) -> None:
    os.environ["SPARK_SUBMIT_OPTS"] = " ".join(options)
    from pyspark import SparkContext

    from stormline import LocalCluster
    from tests.kits.components import Store, line

    topology = line("classes", {0: [1, 2]}, 1, lambda b: b.set_bolt("store", Store("classes")).global_grouping("spout"))
    with LocalCluster(master="local[2]") as cluster:
        cluster.submit_topology("classes", {}, topology).await_drained(STOP_SECS)
        jvm = SparkContext._gateway.proc
    jvm.stdin.close()
    jvm.wait(STOP_SECS)


def _zookeeper(options: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as folder, ZooKeeperServer(Path(folder), jvm_options=options) as server:
        _end(server.pid)


def _kafka(options: Sequence[str]) -> None:
    os.environ["KAFKA_OPTS"] = " ".join(options)
    broker = KafkaBroker(free_port(), free_port())
    try:
        broker.start()
        _end(broker.pid)
    finally:
        broker.stop()


def _end(pid: int) -> None:
    process = psutil.Process(pid)
    process.send_signal(signal.SIGTERM)
    process.wait(STOP_SECS)


RUNS: dict[str, Callable[[Sequence[str]], None]] = {"zookeeper": _zookeeper, "spark": _spark, "kafka": _kafka}


def make(name: str) -> None:
    """Make an archive by a run of what it is for; whoever starts a JVM sees a whole one, or none."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        file = Path(folder, name)
        RUNS[name](recording(file))
        file.replace(FOLDER / f"{name}.jsa")


def main() -> int:
    """Make what is not there, and say what could not be made: nothing needs it but time. Return the exit code."""
    names = [name for name in RUNS if not (FOLDER / f"{name}.jsa").exists() and (name != "kafka" or jars())]
    runs = [get_context("spawn").Process(target=make, args=(name,)) for name in names]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    for name, run in zip(names, runs, strict=True):
        print(f"{name}: made" if not run.exitcode else f"{name}: not made, the run ended with {run.exitcode}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
