"""The running contract on Spark, with an embedded ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stormline import LocalCluster
from tests.columnar_contract import ColumnarContract
from tests.metrics_contract import MetricsContract
from tests.placement_contract import PlacementContract
from tests.running_contract import RunningContract
from tests.stopping_contract import StoppingContract


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(master="local[2]") as made:
        yield made


class TestOnSpark(RunningContract, StoppingContract, PlacementContract, ColumnarContract, MetricsContract):
    """Every stage in Spark's Python workers, in one cluster for all tests."""

    other_processes = True
