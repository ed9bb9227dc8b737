"""The running contract on Spark, with an embedded ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stormline import LocalCluster
from tests.contracts.columnar import ColumnarContract
from tests.contracts.metrics import MetricsContract
from tests.contracts.placement import PlacementContract
from tests.contracts.running import RunningContract
from tests.contracts.stopping import StoppingContract


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(master="local[2]") as made:
        yield made


class TestOnSpark(RunningContract, StoppingContract, PlacementContract, ColumnarContract, MetricsContract):
    """Every stage in Spark's Python workers, in one cluster for all tests."""

    other_processes = True
