"""A JVM with Spark's jars, and ZooKeeper's among them, in which no Spark is started."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.java_gateway import launch_gateway

from stormline.runtime.spark.context import quiet
from stormline.runtime.spark.java import check_java


@contextmanager
def bare_jvm() -> Iterator[Any]:
    """Give py4j's gateway of a new JVM, which ends with the block.

    Raises:
        JavaMissing: there is no Java that Spark can use.
    """
    check_java()
    with quiet(verbose=False):
        gateway = launch_gateway()  # type: ignore[no-untyped-call]
    try:
        yield gateway
    finally:
        gateway.shutdown()
        with contextlib.suppress(OSError):
            gateway.proc.stdin.close()
        gateway.proc.wait()
