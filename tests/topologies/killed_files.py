"""Numbers into files by two-phase commit, in a driver that kills itself at a point that its environment names.

`KILLED_FILES` is the directory; `KILL_AT` a call of the sink in the driver, a transaction and before or after:
`commit:3:after`.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from stormline import (
    CommitOutcome,
    Config,
    Fields,
    MemoryTransactionalSpout,
    Topology,
    TransactionalTopologyBuilder,
    TransactionLabel,
    TwoPhaseCommitBolt,
)
from stormline.state import FileTwoPhaseSink

ROWS = 1_200
TRANSACTIONS = 30
TASKS = 3

config = Config()
config.set_max_spout_pending(4)


class KilledSink(FileTwoPhaseSink):
    """Kills its process in the driver, on order."""

    def commit(self, handle: Any) -> CommitOutcome:
        _kill_at("commit", handle, "before")
        outcome = super().commit(handle)
        _kill_at("commit", handle, "after")
        return outcome

    def abort(self, handle: Any) -> None:
        _kill_at("abort", handle, "before")
        super().abort(handle)


def _kill_at(call: str, handle: Any, when: str) -> None:
    label = TransactionLabel.read(handle)
    if label is not None and os.environ.get("KILL_AT") == f"{call}:{label.txid}:{when}":
        os.kill(os.getpid(), signal.SIGKILL)


def topology() -> Topology:
    """Three partitions of numbers, in batches of 40, into three files a transaction."""
    rows = {p: [[n] for n in range(p, ROWS, 2)] for p in range(2)}
    spout = MemoryTransactionalSpout(rows, Fields("n"), ROWS // TRANSACTIONS // 2)
    builder = TransactionalTopologyBuilder("killed-files", "numbers", spout)
    sink = KilledSink(Path(os.environ["KILLED_FILES"]))
    builder.set_bolt("files", TwoPhaseCommitBolt(sink), TASKS).shuffle_grouping("numbers")
    return builder.build_topology()
