"""The holding contract on Spark: all bolts of a placement in one topology."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stormline import LocalCluster
from tests.contracts.holding import HoldingContract, check_replays, run_holding
from tests.holding import ALL_HOLDING
from tests.holding.holding_bolt import HoldingBolt


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Callable[[type[HoldingBolt], str], list[int]]:
    ran: dict[str, dict[type[HoldingBolt], list[int]]] = {}

    def run(holding: type[HoldingBolt], placement: str) -> list[int]:
        if placement not in ran:
            ran[placement] = {}
            directory = tmp_path_factory.mktemp(placement)
            bolts = [bolt for bolt in ALL_HOLDING if placement in bolt.placements]
            with LocalCluster(master="local[2]") as cluster:
                check_replays(run_holding(cluster, directory, placement, *bolts))
            ran[placement] = {bolt: bolt.stored(directory) for bolt in bolts}
        assert ran[placement], "the topology has failed in the first of these tests"
        return ran[placement][holding]

    return run


class TestOnSpark(HoldingContract):
    """Every stage in Spark's Python workers, and so the commits that are placed on the executors."""
