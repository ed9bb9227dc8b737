"""A driver of its own process that serves a state directory, writes one value, and then waits to be killed."""

from __future__ import annotations

import sys
from pathlib import Path

from stormline.runtime.cluster.embedded_zookeeper import EmbeddedZooKeeper
from stormline.runtime.spark.context import start_spark
from stormline.runtime.state.state_store import Put
from stormline.runtime.zookeeper.store import ZooKeeperStateStore


def main() -> None:
    spark, _ = start_spark("embedded-driver", "local[1]", {})
    zookeeper = EmbeddedZooKeeper(spark, Path(sys.argv[1]))
    store = ZooKeeperStateStore.open(zookeeper.hosts, "/transactional", "topo", session_timeout_ms=60_000)
    store.write([Put("a", 1)])
    print("written", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
