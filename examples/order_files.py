"""Orders, written into files by the executors: a file appears when its transaction is committed, whole, and once.

stormline run examples.order_files
stormline transactions list examples.order_files
"""

from __future__ import annotations

import json
from pathlib import Path

from stormline import (
    Config,
    Fields,
    MemoryTransactionalSpout,
    Topology,
    TransactionalTopologyBuilder,
    TwoPhaseCommitBolt,
)
from stormline.state import FileTwoPhaseSink

DIRECTORY = Path(".stormline/order-files/orders")
ORDERS = 1_000

config = Config()
config.set_max_spout_pending(8)


def topology() -> Topology:
    """Orders of two tills, in batches of 100, into two files a transaction."""
    tills = {till: [[number, till] for number in range(till, ORDERS, 2)] for till in range(2)}
    spout = MemoryTransactionalSpout(tills, Fields("order", "till"), take_per_batch=50)
    builder = TransactionalTopologyBuilder("order-files", "tills", spout)
    builder.set_bolt("files", TwoPhaseCommitBolt(FileTwoPhaseSink(DIRECTORY)), 2).shuffle_grouping("tills")
    return builder.build_topology()


def written() -> list[int]:
    """Return the numbers of all orders that can be seen, in the order of their transactions."""
    lines = [line for file in sorted(DIRECTORY.glob("*.jsonl")) for line in file.read_text().splitlines()]
    return [json.loads(line)["order"] for line in lines]


def report() -> str:
    """Say what a run has left."""
    orders = written()
    return f"{len(orders)} orders in {DIRECTORY}, {len(set(orders))} of them different; expected {ORDERS}"
