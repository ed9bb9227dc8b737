"""A topology that has run in memory, to be audited, and committers of the user's."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from stormline import (
    BaseTransactionalBolt,
    Fields,
    ICommitter,
    InProcessCluster,
    MemoryTransactionalSpout,
    Topology,
    TransactionalTopologyBuilder,
)
from stormline.runtime.audit.audit import AuditReport, audit
from stormline.runtime.state.stored_value import unseal
from stormline.state import Count, SQLiteStore, StateMap, Store, TransactionalMap, persistent_aggregate
from stormline.state.comparison import Difference
from stormline.testing import MemoryStateServer
from stormline.topology.serialization import PLAIN

Partitions = dict[int, list[Any]]
WORDS: Partitions = {0: ["cat", "dog", "cat"], 1: ["dog", "cat", "owl", "ant"]}


class Reader:
    """The state of a topology in memory, as one reads it who does not own it."""

    def __init__(self, server: MemoryStateServer, topology: str) -> None:
        self._server = server
        self._topology = topology

    def get(self, path: str) -> Any:
        return unseal(self._server.topologies[self._topology].nodes[path], PLAIN, path)


class Run:
    """A topology that has run, and its state."""

    def __init__(self, topology: Topology, config: Mapping[str, Any] | None = None) -> None:
        self.server = MemoryStateServer()
        self.topology = topology
        self.config = config or {}
        self.go_on()

    def go_on(self) -> None:
        with InProcessCluster(self.server) as cluster, cluster.submit(self.topology, self.config) as handle:
            handle.await_drained(60)

    def audit(self, topology: Topology | None = None) -> AuditReport:
        return audit(topology or self.topology, self.config, self.reader())

    def reader(self) -> Reader:
        return Reader(self.server, self.topology.id)

    def nodes(self) -> dict[str, bytes]:
        return dict(self.server.topologies[self.topology.id].nodes)


def counts_in(store: Store, kind: type[StateMap] = TransactionalMap) -> StateMap:
    return kind(store, "words", key={"word": str}, value={"count": int})


def counting(into: Any, partitions: Partitions = WORDS, take: int = 1, parallelism: int = 2) -> Topology:
    spout = MemoryTransactionalSpout(partitions, ["word"], take)
    builder = TransactionalTopologyBuilder("audited", "spout", spout, 2)
    persistent_aggregate(builder, "words", "spout", into, {"count": Count()}, parallelism)
    return builder.build_topology()


def changed(store: SQLiteStore, text: str, *parameters: Any) -> None:
    with closing(sqlite3.connect(store.path)) as db, db:
        assert db.execute(text, parameters).rowcount == 1


def differences(report: AuditReport) -> list[Difference]:
    return [one for table in report.tables for one in table.differences]


class Stores(BaseTransactionalBolt, ICommitter):
    """A committer of the user's, which may do anything at a commit."""

    commits: list[int] = []  # noqa: RUF012

    def __init__(self, into: StateMap) -> None:
        self.into = into

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: Any) -> None:
        self.context, self.attempt, self.seen = context, batch_id, dict[str, int]()

    def execute(self, tup: Any) -> None:
        self.seen[tup[1]] = self.seen.get(tup[1], 0) + 1

    def finish_batch(self) -> None:
        self.commits.append(self.attempt.transaction_id)
        self.into.begin_commit(self.context, self.attempt).increment(self.seen)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("tx", "word"))


class Declares(Stores):
    """One whose author says that it stores in a store's maps, and does nothing else."""

    def __init__(self, into: StateMap) -> None:
        super().__init__(into)
        self.effects_in = into.store


def stored_by(bolt: Any) -> Topology:
    builder = TransactionalTopologyBuilder("own", "spout", MemoryTransactionalSpout(WORDS, ["word"], 1), 2)
    builder.set_bolt("own", bolt, 2).fields_grouping("spout", Fields("word"))
    return builder.build_topology()
