"""What ZooKeeper holds: read from the server's own nodes, past whatever a driver believes of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from stormline.runtime.state.memory_store import MemoryStateServer
from stormline.runtime.state.state_tree import FOLDER
from stormline.runtime.state.stored_value import unseal
from stormline.topology.serialization import PLAIN

PATH = re.compile(r"committed|batches|batches/\d{12}")
"""Every path that a topology has; whatever else there is grows without anybody who removes it."""

NODE_BYTES_MAX = 300
"""More than one node of the model's batches takes, with the handle of a sink."""


def path_of(txid: int) -> str:
    """Return where the batch of a transaction is stored."""
    return f"batches/{txid:012}"


def span_of(record: dict[str, Any]) -> tuple[int, int]:
    """Return the first offset of a fixed batch, and the one after its last."""
    [[_, end, rows, _, _]] = record["partitions"]
    return end - rows, end


@dataclass(frozen=True, slots=True)
class Durable:
    """The state of a topology at one time: the nodes as they are, the last committed txid, the batches' records."""

    nodes: dict[str, bytes]
    committed: int
    batches: dict[int, Any]

    @classmethod
    def of(cls, server: MemoryStateServer, topology_id: str) -> Durable:
        """Read it."""
        nodes = dict(server.topologies[topology_id].nodes)
        values = {path: unseal(data, PLAIN, path) for path, data in nodes.items() if data != FOLDER}
        committed = values["committed"]["txid"] if "committed" in values else 0
        batches = {int(path[-12:]): value for path, value in values.items() if path.startswith("batches/")}
        return cls(nodes, committed, batches)

    def foreign(self) -> list[str]:
        """Return the nodes that nothing is known of, or that hold more than one of theirs can."""
        return [p for p, data in self.nodes.items() if not PATH.fullmatch(p) or len(data) > NODE_BYTES_MAX]
