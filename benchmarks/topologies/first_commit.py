"""A small topology that says on standard output when its first transaction is recorded: `stormline run` runs it.

With one transaction at a time, the coordinator is asked for the second one only when the first is durably committed.
"""

from __future__ import annotations

from benchmarks.topologies.global_count import global_count
from benchmarks.topologies.synthetic import GATES, Gate
from stormline import Config, Topology

TOPOLOGY_ID = "bench-first-commit"
COMMITTED = "the first transaction is committed"


class _Announcing(Gate):
    """Gives one batch; says so when it is asked for another."""

    def is_ready(self) -> bool:
        if self.begun == 1 and self.allowed == 1:
            self.allowed = 0
            print(COMMITTED, flush=True)
        return super().is_ready()


def topology() -> Topology:
    """Declare the topology: one batch of 1,000 tuples."""
    gate = GATES[TOPOLOGY_ID] = _Announcing()
    gate.release(1)
    return global_count(TOPOLOGY_ID, 1_000)


config = Config()
config.set_max_spout_pending(1)
