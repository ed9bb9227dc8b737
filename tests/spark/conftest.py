"""One SparkContext for the session; `LocalCluster` uses the one that is active."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark import SparkContext

from stormline.runtime.spark.context import start_spark


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkContext]:
    sc, _ = start_spark("stormline-tests", "local[2]", {})
    yield sc
    sc.stop()
