"""What kind a process of a measurement is."""

from __future__ import annotations

import os
from dataclasses import dataclass

import pytest

from benchmarks.measuring.processes import kind_of


@dataclass
class Process:
    """As psutil describes one."""

    command: list[str]
    pid: int = 0

    def cmdline(self) -> list[str]:
        return self.command


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (["/jdk/bin/java", "-cp", "/site-packages/pyspark/jars/*", "org.apache.spark.deploy.SparkSubmit"], "JVM"),
        (["/jdk/bin/java", "-Xmx512m", "kafka.Kafka", "server.properties"], "Kafka"),
        (["/venv/bin/python", "-m", "pyspark.daemon", "pyspark.worker"], "workers"),
        (["/usr/lib/postgresql/15/bin/postgres", "-D", "/data"], "others"),
        (["postgres: checkpointer "], "others"),
        (["sh"], "others"),
        ([], "others"),
    ],
)
def test_a_process_is_known_by_its_command(command: list[str], kind: str) -> None:
    assert kind_of(Process(command)) == kind


def test_this_process_is_the_driver() -> None:
    assert kind_of(Process(["python"], os.getpid())) == "driver"
