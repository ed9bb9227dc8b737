"""The running contract on the in-process double."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stormline.runtime.in_process_cluster import InProcessCluster
from tests.running_contract import RunningContract


@pytest.fixture
def cluster() -> Iterator[InProcessCluster]:
    with InProcessCluster() as made:
        yield made


class TestInProcess(RunningContract):
    """Every stage in this process."""


class TestInProcessAtCommit(RunningContract):
    """Committers get all their tuples at the commit."""

    @pytest.fixture
    def cluster(self) -> Iterator[InProcessCluster]:
        with InProcessCluster(at_commit=True) as made:
            yield made
