"""The processes of a measurement: this one, which is the driver, and all that it has started, by kind."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Protocol

import psutil

DRIVER, JVM, WORKERS, KAFKA, OTHERS = "driver", "JVM", "workers", "Kafka", "others"


class Process(Protocol):
    """What is asked of a process; psutil's have it."""

    @property
    def pid(self) -> int:
        """Its number."""

    def cmdline(self) -> list[str]:
        """Return its command."""


def kind_of(process: Process) -> str:
    """Return what kind of process it is; `OTHERS` are databases and what starts them."""
    if process.pid == os.getpid():
        return DRIVER
    command = process.cmdline()
    if command and command[0].rpartition("/")[2] == "java":
        return KAFKA if "kafka.Kafka" in command else JVM
    return WORKERS if any("pyspark" in part for part in command) else OTHERS


def by_kind() -> dict[str, list[psutil.Process]]:
    """Look at the processes that there are."""
    me = psutil.Process()
    found: dict[str, list[psutil.Process]] = {kind: [] for kind in (DRIVER, JVM, WORKERS, KAFKA, OTHERS)}
    for process in [me, *me.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
            found[kind_of(process)].append(process)
    return found
