"""What a committer may hold: anything. One suite for every engine and placement.

Each bolt of `tests.holding` must store each number once, over several transactions of which four are replayed: after a
failure in `prepare`, in `execute`, and in `finish_batch` before and after it has stored.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from stormline import Config, MemoryTransactionalSpout, TransactionalTopologyBuilder
from tests.holding import ALL_HOLDING
from tests.holding.databases import empty_databases
from tests.holding.holding_bolt import DRIVER, EXECUTORS, FAILURES, HoldingBolt
from tests.kits.components import Basic, numbers

NUMBERS = 100
CASES = [
    pytest.param(holding, placement, id=f"{holding.__name__}-{placement}")
    for placement in (DRIVER, EXECUTORS)
    for holding in ALL_HOLDING
    if placement in holding.placements
]


def run_holding(cluster: Any, directory: Path, placement: str, *bolts: type[HoldingBolt]) -> Any:
    """Run these bolts beside each other, and return the topology's handle."""
    empty_databases()
    spout = MemoryTransactionalSpout(numbers(NUMBERS), ["value"], 8)
    name = f"holding-{os.getpid()}-{directory.name}"
    builder = TransactionalTopologyBuilder(name, "spout", spout, 2)
    builder.set_bolt("basic", Basic(), 2).shuffle_grouping("spout")
    for bolt in bolts:
        # One of the two tasks never gets a tuple.
        builder.set_bolt(bolt.__name__, bolt(directory), 2).global_grouping("basic")
    config = {"topology.max.spout.pending": 4, Config.TOPOLOGY_COMMIT_PLACEMENT: placement, "holding.cache": {}}
    handle = cluster.submit_topology(name, config, builder.build_topology())
    handle.await_drained(120)
    handle.kill()
    assert handle.error is None
    return handle


@pytest.mark.filterwarnings(
    # Attempts that failed are dropped with all that they opened.
    "ignore:Implicitly cleaning up:ResourceWarning",
    "ignore:unclosed:ResourceWarning",
)
class HoldingContract:
    """Needs a fixture `stored`: called with a bolt and a placement, it has it run and returns what it has stored."""

    @pytest.mark.parametrize(("holding", "placement"), CASES)
    def test_what_a_committer_holds_is_its_own_and_every_number_counts_once(
        self, stored: Any, holding: type[HoldingBolt], placement: str
    ) -> None:
        assert stored(holding, placement) == list(range(NUMBERS))


def check_replays(handle: Any) -> None:
    """Check that all has failed that was to."""
    assert handle.txid_committed == 7
    assert handle.snapshot().replays >= len(FAILURES)
