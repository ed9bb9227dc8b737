"""What all tests share: Spark's JVMs are made for runs of seconds.

A JVM of Spark's spends most of a short run compiling itself thoroughly. With the first compiler alone, and the simplest
collector, a run costs a third less CPU, and does the same. PySpark hands these variables to the JVM that it starts.
"""

from __future__ import annotations

import os

JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

for variable in ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS"):
    os.environ[variable] = f"{JVM_OPTIONS} {os.environ.get(variable, '')}".strip()
