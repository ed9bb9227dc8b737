"""A driver of its own process: opens a state store, then does what it is told line by line."""

from __future__ import annotations

import sys

from stormline.runtime.state.state_store import Put
from stormline.runtime.zookeeper.store import ZooKeeperStateStore
from stormline.topology.errors import StormlineError


def main() -> None:
    hosts, root, session_timeout_ms = sys.argv[1:]
    try:
        store = ZooKeeperStateStore.open(hosts, root, "topo", session_timeout_ms=int(session_timeout_ms))
    except StormlineError as error:
        print(f"{type(error).__name__}: {error}", flush=True)
        return
    print(f"epoch {store.epoch}", flush=True)
    for line in sys.stdin:
        try:
            store.write([Put("a", line.strip())])
            print("written", flush=True)
        except StormlineError as error:
            print(f"{type(error).__name__}: {error}", flush=True)


if __name__ == "__main__":
    main()
