"""A real Spark standalone cluster on loopback: a master and workers, each a process, out of the pyspark package."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import psutil
import pyspark

from tests.services.jvm import quoted

HOME = Path(pyspark.__file__).parent
START_SECS = 60.0
STOP_SECS = 10.0


class SparkStandalone:
    """A master, and one worker on each of `hosts`: addresses of loopback that look like several machines.

    Args:
        directory: where the logs and the working directories go.
        hosts: one worker each.
        cores, memory: of each worker.
    """

    def __init__(
        self,
        directory: Path,
        hosts: Sequence[str] = ("127.0.0.2", "127.0.0.3"),
        cores: int = 1,
        memory: str = "1g",
    ) -> None:
        self.directory = directory
        self.hosts = tuple(hosts)
        self.master_url = ""
        self._resources = ("--cores", str(cores), "--memory", memory)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> SparkStandalone:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start all, and wait until every worker is registered."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self._launch("master", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1")
        self.master_url = self._await("master", r"Starting Spark master at (spark://\S+)")
        for host in self.hosts:
            self._launch_worker(host)
        for host in self.hosts:
            self._await(host, r"(Successfully registered) with master")

    def stop(self) -> None:
        """End all processes, and the executors that they started."""
        executors = [one for process in self._processes.values() for one in _children(process)]
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(STOP_SECS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()
        _, alive = psutil.wait_procs(executors, timeout=STOP_SECS)
        _kill(alive)

    def kill_worker(self, host: str) -> None:
        """End a worker, and its executors with it, as a power cut of that machine would."""
        process = self._processes.pop(host)
        executors = _children(process)
        process.kill()
        _kill(executors)
        process.wait()

    def restart_worker(self, host: str) -> None:
        """Start the worker of a host again after `kill_worker`, and wait until it is registered."""
        self._launch_worker(host)
        self._await(host, r"(Successfully registered) with master")

    def executors(self, host: str) -> list[psutil.Process]:
        """Return the executor JVMs that run on a host now."""
        found: list[psutil.Process] = []
        for child in _children(self._processes[host]):
            with contextlib.suppress(psutil.NoSuchProcess):  # it ends, or has ended and is not waited for yet
                if "CoarseGrainedExecutorBackend" in " ".join(child.cmdline()):
                    found.append(child)
        return found

    def log(self, name: str) -> str:
        """Return what the master ("master") or the worker of a host has printed so far."""
        return self._log_file(name).read_text(errors="replace")

    def _log_file(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    def _launch_worker(self, host: str) -> None:
        work_dir = str(self.directory / f"work-{host}")
        self._launch(
            host, "org.apache.spark.deploy.worker.Worker", "--host", host, *self._resources, "--work-dir", work_dir,
            self.master_url,
        )  # fmt: skip

    def _launch(self, name: str, main: str, *arguments: str) -> None:
        with self._log_file(name).open("wb") as log:
            self._processes[name] = subprocess.Popen(
                [HOME / "bin" / "spark-class", main, "--port", "0", "--webui-port", "0", *arguments],
                env=self._environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip

    def _environment(self) -> dict[str, str]:
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
        return clean | {
            "SPARK_HOME": str(HOME),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": quoted("spark"),
        }

    def _await(self, name: str, pattern: str) -> str:
        deadline = time.monotonic() + START_SECS
        while (found := re.search(pattern, self.log(name))) is None:
            assert self._processes[name].poll() is None, f"{name} did not start:\n{self.log(name)}"
            assert time.monotonic() < deadline, f"{name} did not start in time:\n{self.log(name)}"
            time.sleep(0.02)
        return found[1]


def _children(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    if process.poll() is not None:
        return []
    return list(psutil.Process(process.pid).children(recursive=True))


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes, timeout=STOP_SECS)
