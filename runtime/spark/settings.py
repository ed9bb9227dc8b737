"""The Spark settings that the laws need, and what breaks them. Imports no pyspark."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any

from stormline.runtime.errors import UnsafeSpark
from stormline.topology.errors import InvalidConfig
from stormline.topology.secrets import is_reference, literal_secrets, names_a_secret

# Spark may run a task twice in five ways (docs/measured.md). With these it does not, on its own account, and a failed
# job is replayed by the coordinator; the rest is law 7 (one execution).
REQUIRED = {
    "spark.speculation": "false",
    "spark.task.maxFailures": "1",
    "spark.stage.maxConsecutiveAttempts": "1",
}
PREFERRED = {
    "spark.driver.maxResultSize": "0",
    "spark.python.task.killTimeout": "500ms",
    "spark.ui.showConsoleProgress": "false",
    # Over loopback TCP every job waits some 35 ms for a delayed acknowledgement between the JVM and its Python worker.
    "spark.python.unix.domain.socket.enabled": "false" if sys.platform == "win32" else "true",
    "spark.scheduler.mode": "FAIR",  # a commit on the executors waits for a Spark task, not for the rest of a wave
}


def check_no_secrets(settings: Mapping[str, Any]) -> None:
    """Raise `UnsafeSpark` where a setting holds a secret: Spark is started with its settings on the command line."""
    secrets = literal_secrets(settings)
    references = [key for key, value in settings.items() if names_a_secret(key) and is_reference(value)]
    for key in [*secrets, *references]:
        raise UnsafeSpark(
            f"{key} would stand on the command line that starts Spark, where every user of the machine sees it (and "
            "Spark reads no env:NAME or file:PATH); put it into Spark's own conf/spark-defaults.conf, readable by this "
            "user only, or into a file given by spark-submit --properties-file"
        )


def check_master(master: str) -> None:
    """Raise `InvalidConfig` where this is none of Spark's master URLs: Spark would take seconds to say it less well."""
    if not re.fullmatch(r"local|local\[[^\[\]]+\]|local-cluster\[[^\[\]]+\]|yarn|[a-z0-9+.-]+://.+", master):
        raise InvalidConfig(
            f"Spark's master is {master!r}, expected local, local[N], local[*], spark://HOST:PORT, yarn or k8s://…"
        )


def is_local(master: str) -> bool:
    """Return whether Spark runs in the driver's own JVM, where no task is ever run twice."""
    return master == "local" or master.startswith("local[")


def check_safe(master: str, settings: Mapping[str, str]) -> None:
    """Raise `UnsafeSpark` where Spark could run a task of one job twice."""
    if is_local(master):
        retries = re.fullmatch(r"local\[[^,]*,\s*(\d+)\s*\]", master)
        if retries is not None and int(retries[1]) != 1:
            raise UnsafeSpark(
                f"with master {master} Spark tries a task {retries[1]} times, expected once: replays belong to "
                f"Stormline's coordinator; leave out the {retries[1]}"
            )
        return
    for key, needed in REQUIRED.items():
        got = settings.get(key)
        if got is None or got.lower() != needed:
            raise UnsafeSpark(
                f"{key} is {got or 'not set'}, expected {needed}: replays belong to Stormline's coordinator, which "
                f"knows what was committed; start Spark with --conf {key}={needed}"
            )
