"""Topologies over Kafka spouts, run in this process until there is nothing left to read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stormline import (
    BaseBasicBolt,
    BaseTransactionalBolt,
    FailedException,
    Fields,
    ICommitter,
    InProcessCluster,
    TransactionalTopologyBuilder,
    Values,
)


class FailNowAndThen(BaseBasicBolt):
    """Fails the first attempt of each second transaction, so that all that can be replayed is."""

    def __init__(self) -> None:
        self.failed: set[int] = set()

    def execute(self, tup: Any, collector: Any) -> None:
        txid = tup[0].transaction_id
        if txid % 2 == 0 and txid not in SEEN:
            SEEN.add(txid)
            raise FailedException("on order")
        collector.emit(Values(tup[0], tup.values[1:]))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("id", "row"))


class Store(BaseTransactionalBolt, ICommitter):
    """Stores the rows of each transaction, once."""

    def prepare(self, conf: Any, context: Any, collector: Any, attempt: Any) -> None:
        self.attempt = attempt
        self.rows: list[Any] = []

    def execute(self, tup: Any) -> None:
        self.rows.append(tup[1])

    def finish_batch(self) -> None:
        STORED.setdefault(self.attempt.transaction_id, self.rows)
        if AT_COMMIT:
            AT_COMMIT.pop()(self.attempt)


SEEN: set[int] = set()
STORED: dict[int, list[Any]] = {}
AT_COMMIT: list[Callable[[Any], None]] = []


def begin_anew() -> None:
    """Forget what was stored."""
    for shared in (SEEN, STORED, AT_COMMIT):
        shared.clear()


def submit(cluster: InProcessCluster, spout: Any, tasks: int = 1, config: Any = None) -> Any:
    """Start the topology."""
    builder = TransactionalTopologyBuilder("kafka", "spout", spout, tasks)
    builder.set_bolt("fails", FailNowAndThen()).shuffle_grouping("spout")
    builder.set_bolt("store", Store()).global_grouping("fails")
    return cluster.submit_topology("kafka", config or {}, builder.build_topology())


def drain(spout: Any, tasks: int = 1, cluster: InProcessCluster | None = None, config: Any = None) -> list[Any]:
    """Run until nothing is left; return all stored rows, in the order of transactions."""
    with cluster or InProcessCluster() as running:
        handle = submit(running, spout, tasks, config)
        handle.await_drained(timeout_secs=120)
    return [row for txid in sorted(STORED) for row in STORED[txid]]
