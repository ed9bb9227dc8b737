"""A driver: `python -m tests.chaos.driver SETTINGS NUMBER`. It starts Spark and waits to be told a design to run.

It writes what it is, and how it ended, beside the settings: driver-NUMBER.json and driver-NUMBER.end.json.
SIGTERM: end in good order. SIGUSR1: cancel all Spark jobs. SIGUSR2: let the wall clock jump by what driver-NUMBER.clock
says: `time.time` of this process, which is what Python code sees. libfaketime would reach further, but under it
Python 3.11 hangs in the first wait for a thread (it knows no sem_clockwait), and starts no process.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from stormline import LocalCluster
from stormline.runtime.errors import AlreadyRunning, ZooKeeperUnreachable
from stormline.runtime.spark.context import start_spark
from tests.chaos import topology
from tests.chaos.design import Design
from tests.services.jvm import quoted

LOOK_SECS = 0.05
TRUE_TIME = time.time
CLAIM_SECS = 10.0
JOB_SECS = 2.0
"""Time to wait for a job to cancel: none runs while the topology waits for its source, or for a commit."""


class Driver:
    """One life of a driver."""

    def __init__(self, settings: dict[str, Any], number: int) -> None:
        self._settings = settings
        self._number = number
        self._folder = Path(settings["folder"])
        self._stop = False
        self._cancel = False
        self._cancelled: list[int] = []

    def live(self) -> None:
        """Start Spark, wait for a design, run it to the end."""
        spark = {
            "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.driver.memory": "512m",
            "spark.cores.max": 2,
            "spark.executor.cores": 1,
            "spark.executor.memory": "512m",
            "spark.driver.extraJavaOptions": quoted("spark"),
            "spark.executor.extraJavaOptions": quoted("spark"),
        }
        signal.signal(signal.SIGTERM, self._told_to_stop)
        signal.signal(signal.SIGUSR1, self._told_to_cancel)
        signal.signal(signal.SIGUSR2, self._told_the_time)
        sc, _ = start_spark(f"chaos driver {self._number}", self._settings["master"], spark)
        try:
            with contextlib.suppress(Exception):  # as after any fault: what it waits for may be killed
                sc.parallelize(range(2), 2).map(topology.warm_up).collect()
            self._write("json", pid=os.getpid(), application=sc.applicationId)
            line = sys.stdin.readline()
            if line:
                self._drive(Design.from_json(line), sc)
        finally:
            sc.stop()

    def _drive(self, design: Design, sc: Any) -> None:
        made = topology.build(
            design, self._folder, self._settings["dsn"], self._settings["stores"], self._settings["kafka"]
        )
        config = topology.config(
            design,
            self._settings["zookeeper"],
            self._settings["session_timeout_ms"],
            self._settings["message_timeout_secs"],
        )
        with LocalCluster(None, self._settings["master"]) as cluster:
            handle = self._submit(cluster, design, config, made)
            while handle.running and not self._stop:
                time.sleep(LOOK_SECS)
                if self._cancel:
                    self._cancel = False
                    self._cancel_jobs(sc)
            self._write("replays", replays=handle.snapshot().replays)
            if handle.error is not None:
                raise handle.error

    def _cancel_jobs(self, sc: Any) -> None:
        """Cancel all jobs as soon as there are any, and write how many there were each time."""
        deadline = time.monotonic() + JOB_SECS
        while not (jobs := sc.statusTracker().getActiveJobsIds()) and time.monotonic() < deadline:
            time.sleep(0.01)
        sc.cancelAllJobs()
        self._cancelled.append(len(jobs))
        self._write("cancelled", jobs=self._cancelled)

    def _submit(self, cluster: LocalCluster, design: Design, config: dict[str, Any], made: Any) -> Any:
        """Submit it, again and again for a while: the driver before may have just lost the topology."""
        deadline = time.monotonic() + CLAIM_SECS
        while True:
            try:
                return cluster.submit_topology(design.topology, config, made)
            except (AlreadyRunning, ZooKeeperUnreachable):
                if time.monotonic() > deadline or self._stop:
                    raise
                time.sleep(LOOK_SECS)

    def _told_to_stop(self, *_: Any) -> None:
        self._stop = True

    def _told_to_cancel(self, *_: Any) -> None:
        self._cancel = True

    def _told_the_time(self, *_: Any) -> None:
        offset = float((self._folder / f"driver-{self._number}.clock").read_text())
        time.time = lambda: TRUE_TIME() + offset
        self._write("jumped", secs=round(time.time() - TRUE_TIME()))

    def _write(self, suffix: str, **values: Any) -> None:
        path = self._folder / f"driver-{self._number}.{suffix}"
        path.with_suffix(".new").write_text(json.dumps(values))
        os.replace(path.with_suffix(".new"), path)

    def end(self, error: BaseException | None) -> None:
        """Write how it ended."""
        name = "" if error is None else type(error).__name__
        cause = "" if error is None or error.__cause__ is None else type(error.__cause__).__name__
        self._write("end", error=name, cause=cause, message="" if error is None else str(error)[-3000:])


def main(settings: str, number: str) -> int:
    """Live; return the exit code."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    logging.getLogger("kazoo").setLevel(logging.WARNING)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    driver = Driver(json.loads(Path(settings).read_text()), int(number))
    try:
        driver.live()
    except BaseException as error:
        logging.getLogger("stormline").exception("driver %s ends", number)
        driver.end(error)
        return 1
    else:
        driver.end(None)
        return 0
    finally:  # one of these may come yet, and would kill the process: Python takes its handlers away as it ends
        for told in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(told, signal.SIG_IGN)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
