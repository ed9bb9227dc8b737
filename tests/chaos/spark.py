"""The standalone cluster, whose processes die with the harness."""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import psutil

from tests.chaos.processes import start
from tests.services.spark_standalone import HOME, SparkStandalone


class ChaosStandalone(SparkStandalone):
    """Two workers, with room for the executors of several drivers: one that runs, one that waits, one that is dead."""

    def __init__(self, directory: Path, env: Mapping[str, str]) -> None:
        super().__init__(directory, cores=4, memory="8g")
        self._env = env

    def _launch(self, name: str, main: str, *arguments: str) -> None:
        command = [str(HOME / "bin" / "spark-class"), main, "--port", "0", "--webui-port", "0", *arguments]
        self._log_file(name).unlink(missing_ok=True)
        environment = {**self._environment(), **self._env}
        self._processes[name] = start(command, self._log_file(name), environment)

    def processes(self) -> list[subprocess.Popen[bytes]]:
        """Return the master's and the workers' processes."""
        return list(self._processes.values())

    def worker(self, host: str) -> subprocess.Popen[bytes]:
        """Return the worker's process."""
        return self._processes[host]

    def kill_worker_alone(self, host: str) -> None:
        """Kill a worker's process; its executors notice, and end by themselves."""
        process = self._processes.pop(host)
        process.kill()
        process.wait()

    def executors_of(self, application: str) -> list[psutil.Process]:
        """Return the executor JVMs of one driver."""
        found = []
        for host in self.hosts:
            if host not in self._processes:
                continue
            for process in self.executors(host):
                with contextlib.suppress(psutil.NoSuchProcess):
                    if re.search(rf"--app-id {re.escape(application)}( |$)", " ".join(process.cmdline())):
                        found.append(process)
        return found

    def python_workers_of(self, application: str) -> tuple[list[psutil.Process], list[psutil.Process]]:
        """Return the Python daemons of one driver's executors, and the workers that they have forked."""
        daemons, workers = [], []
        for executor in self.executors_of(application):
            with contextlib.suppress(psutil.NoSuchProcess):
                for child in executor.children():
                    daemons.append(child)
                    workers += child.children(recursive=True)
        return daemons, workers
