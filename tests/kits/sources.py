"""Topologies over the ready spouts, run in this process: what is stored though attempts and commits fail."""

from __future__ import annotations

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
from stormline.testing import MemoryStateServer

TOPOLOGY = "sources"


class Crash(Exception):
    """What a driver dies of, in the middle of a commit."""


class Sink:
    """A database: the rows of each transaction, applied once by its txid. `crash_at`: transactions that crash once."""

    def __init__(self) -> None:
        self.stored: dict[int, list[Any]] = {}
        self.failed: set[int] = set()
        self.crash_at: set[int] = set()

    @property
    def rows(self) -> list[Any]:
        """Return all rows in the order of transactions, and within each in some order."""
        return [row for txid in sorted(self.stored) for row in self.stored[txid]]

    def __deepcopy__(self, memo: Any) -> Sink:
        return self


SINKS: dict[str, Sink] = {}


class Rows(BaseBasicBolt):
    """Passes rows on, as they are."""

    def execute(self, tup: Any, collector: Any) -> None:
        collector.emit(Values(tup[0], tup.values[1:]))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("id", "row"))


class FailNowAndThen(BaseBasicBolt):
    """Fails the first attempt of transactions 3, 6, 9, …, so that they are replayed."""

    def __init__(self, sink: str) -> None:
        self.sink = sink

    def execute(self, tup: Any, collector: Any) -> None:
        txid, sink = tup[0].transaction_id, SINKS[self.sink]
        if txid % 3 == 0 and txid not in sink.failed:
            sink.failed.add(txid)
            raise FailedException("on order")
        collector.emit(Values(tup[0], tup.values[1:]))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("id", "row"))


class Store(BaseTransactionalBolt, ICommitter):
    """Stores the rows of a transaction, and may crash right after: then nobody knows that it has."""

    def __init__(self, sink: str) -> None:
        self.sink = sink

    def prepare(self, conf: Any, context: Any, collector: Any, attempt: Any) -> None:
        self.attempt = attempt
        self.rows: list[Any] = []

    def execute(self, tup: Any) -> None:
        row = tup[1]
        self.rows.append(row[0] if len(row) == 1 else tuple(row))

    def finish_batch(self) -> None:
        sink, txid = SINKS[self.sink], self.attempt.transaction_id
        rows = sorted(self.rows)
        assert sink.stored.setdefault(txid, rows) == rows, f"transaction {txid} came out differently"
        if txid in sink.crash_at:
            sink.crash_at.remove(txid)
            raise Crash(txid)


def topology(spout: Any, tasks: int = 1, *, fails: bool = True) -> Any:
    """Return spout → fails now and then, unless told → stores, in the sink of this process."""
    builder = TransactionalTopologyBuilder(TOPOLOGY, "spout", spout, tasks)
    builder.set_bolt("rows", FailNowAndThen(TOPOLOGY) if fails else Rows()).shuffle_grouping("spout")
    builder.set_bolt("store", Store(TOPOLOGY)).global_grouping("rows")
    return builder.build_topology()


def new_sink() -> Sink:
    """Return the sink of the next topology, empty."""
    SINKS[TOPOLOGY] = Sink()
    return SINKS[TOPOLOGY]


def drain(spout: Any, tasks: int = 1, server: MemoryStateServer | None = None, *, changed: bool = False) -> None:
    """Run until the spout has nothing left. Raises what stops the topology."""
    with InProcessCluster(server or MemoryStateServer()) as cluster:
        handle = cluster.submit(topology(spout, tasks), {}, allow_changed_topology=changed)
        handle.await_drained(60)
