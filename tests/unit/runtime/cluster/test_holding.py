"""The holding contract on the in-process double: each bolt in a topology of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from tests.contracts.holding import HoldingContract, check_replays, run_holding
from tests.holding.holding_bolt import HoldingBolt


class TestInProcess(HoldingContract):
    """Every stage, and every commit, in this process."""

    @pytest.fixture
    def stored(self, tmp_path: Path) -> Callable[[type[HoldingBolt], str], list[int]]:
        def run(holding: type[HoldingBolt], placement: str) -> list[int]:
            with InProcessCluster() as cluster:
                check_replays(run_holding(cluster, tmp_path, placement, holding))
            return holding.stored(tmp_path)

        return run
