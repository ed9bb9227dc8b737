"""A driver of its own process that is killed right after one write of user state, the first time: see test_user_state.

Arguments: ZooKeeper's hosts, the root, the path after whose write it dies, the txid that is written then, a file that
tells that it has died.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from stormline import TransactionalState
from stormline.runtime.cluster.in_process_engine import InProcessEngine
from stormline.runtime.cluster.submission import start_topology
from stormline.runtime.zookeeper.store import ZooKeeperStateStore
from stormline.topology.compiler import compile_topology
from tests.kits.user_state import Notes, PositionsOfStorm, topology


def main(hosts: str, root: str, path: str, txid: str, died: str) -> None:
    """Run the topology until it is drained."""
    write = TransactionalState.set_data

    def write_and_die(self: TransactionalState, at: str, obj: Any) -> None:
        write(self, at, obj)
        written = obj[1] if at == "notes/count" else obj
        if at == path and (at.startswith("0/") or written == int(txid)) and not Path(died).exists():
            Path(died).touch()
            os.kill(os.getpid(), signal.SIGKILL)

    TransactionalState.set_data = write_and_die  # type: ignore[method-assign, assignment]
    plan = compile_topology(topology(PositionsOfStorm(batches=5), ("notes", Notes())))

    def open_store(on_lost: Any) -> ZooKeeperStateStore:
        return ZooKeeperStateStore.open(hosts, root, "topo", on_lost=on_lost, session_timeout_ms=5000)

    with start_topology("topo", plan, open_store, InProcessEngine) as handle:
        handle.await_drained(60)


if __name__ == "__main__":
    main(*sys.argv[1:])
