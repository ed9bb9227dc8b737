"""The running contract on the in-process double."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from tests.contracts.columnar import ColumnarContract
from tests.contracts.metrics import MetricsContract
from tests.contracts.placement import PlacementContract
from tests.contracts.running import RunningContract
from tests.contracts.stopping import StoppingContract


@pytest.fixture
def cluster() -> Iterator[InProcessCluster]:
    with InProcessCluster() as made:
        yield made


class TestInProcess(RunningContract, StoppingContract, PlacementContract, ColumnarContract, MetricsContract):
    """Every stage, and every commit, in this process."""

    other_processes = False


class TestInProcessAtCommit(RunningContract, StoppingContract, PlacementContract, ColumnarContract, MetricsContract):
    """Committers get all their tuples at the commit."""

    other_processes = False

    @pytest.fixture
    def cluster(self) -> Iterator[InProcessCluster]:
        with InProcessCluster(at_commit=True) as made:
            yield made
