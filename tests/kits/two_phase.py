"""A two-phase sink in memory that tells what it is asked, and fails on order; topologies that write into it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from stormline import (
    CommitOutcome,
    FailedException,
    Fields,
    InProcessCluster,
    MemoryTransactionalSpout,
    OpaqueMemoryTransactionalSpout,
    PreparedTransaction,
    Semantic,
    TransactionalTopologyBuilder,
    TransactionLabel,
    TwoPhaseCommitBolt,
)
from stormline.runtime.errors import Fenced
from stormline.runtime.state.memory_store import MemoryStateServer
from stormline.state import MemoryTwoPhaseSink
from stormline.topology.topology import Topology
from stormline.topology.transaction_label import label_scope
from tests.kits.components import eventually

SWEPT = {"topology.max.spout.pending": 3, "topology.sink.sweep.secs": 0.05}
"""Sweeps are frequent."""
ALL = [(n,) for n in range(20)]


def txid_of(text: str) -> int:
    """Return the transaction of a label's text."""
    label = TransactionLabel.read(text)
    assert label is not None, text
    return label.txid


def labels_begin(topology: str) -> str:
    """Return what the labels of all transactions of a topology begin with."""
    return label_scope(topology, "any").partition("-")[0] + "-"


@dataclass
class Order:
    """Do `act` in a call of the sink, for this transaction, before or after its effect, so many times."""

    call: str
    txid: int | None
    act: Callable[[], Any]
    after: bool
    times: int


@dataclass
class Script:
    """What is to happen to one sink, and all that it was asked: (call, txid)."""

    orders: list[Order] = field(default_factory=list)
    trail: list[tuple[str, int]] = field(default_factory=list)
    lists: bool = True

    def on(self, call: str, txid: int | None, act: Callable[[], Any], after: bool = False, times: int = 1) -> None:
        """Let something happen in a call; what it returns, if anything, is what the call returns."""
        self.orders.append(Order(call, txid, act, after, times))

    def fail(self, call: str, txid: int | None = None, after: bool = False, times: int = 1) -> None:
        """Let a call raise FailedException, before or after its effect."""
        self.on(call, txid, _failed, after, times)

    def do(self, call: str, label: str, effect: Callable[[], Any]) -> Any:
        """Do what a call does, and what was ordered."""
        txid = txid_of(label) if label else 0
        self.trail.append((call, txid))
        said = self._strike(call, txid, after=False)
        if said is not None:
            return said
        result = effect()
        said = self._strike(call, txid, after=True)
        return result if said is None else said

    def _strike(self, call: str, txid: int, after: bool) -> Any:
        for order in self.orders:
            if order.call == call and order.after == after and order.txid in (None, txid) and order.times > 0:
                order.times -= 1
                return order.act()
        return None

    def asked(self, call: str) -> list[int]:
        """Return of which transactions a call was made, in order."""
        return [txid for name, txid in self.trail if name == call]


def _failed() -> Any:
    raise FailedException("on order")


SCRIPTS: defaultdict[str, Script] = defaultdict(Script)


class ScriptedSink(MemoryTwoPhaseSink):
    """A `MemoryTwoPhaseSink` by `SCRIPTS[name]`."""

    @property
    def script(self) -> Script:
        """What happens to it."""
        return SCRIPTS[self.name]

    def begin_transaction(self, label: TransactionLabel) -> Any:
        return self.script.do("begin", label.text, lambda: super(ScriptedSink, self).begin_transaction(label))

    def invoke(self, transaction: Any, tup: Any) -> None:
        self.script.do("invoke", transaction[0], lambda: super(ScriptedSink, self).invoke(transaction, tup))

    def pre_commit(self, transaction: Any) -> Any:
        return self.script.do("pre_commit", transaction[0], lambda: super(ScriptedSink, self).pre_commit(transaction))

    def roll_back(self, transaction: Any) -> None:
        self.script.do("roll_back", transaction[0], lambda: None)

    def commit(self, handle: Any) -> CommitOutcome:
        outcome: CommitOutcome = self.script.do("commit", handle, lambda: super(ScriptedSink, self).commit(handle))
        return outcome

    def recover_and_commit(self, handle: Any) -> CommitOutcome:
        self.script.do("recover", handle, lambda: None)
        return self.commit(handle)

    def abort(self, handle: Any) -> None:
        self.script.do("abort", handle, lambda: super(ScriptedSink, self).abort(handle))

    def list_prepared(self, prefix: str) -> Iterable[PreparedTransaction] | None:  # type: ignore[override]
        if not self.script.lists:
            return None
        listed: list[PreparedTransaction] = self.script.do(
            "list", "", lambda: super(ScriptedSink, self).list_prepared(prefix)
        )
        return listed


def fresh(name: str) -> ScriptedSink:
    """Return a sink of which nothing is stored or ordered yet."""
    SCRIPTS.pop(name, None)
    sink = ScriptedSink(name)
    sink.clear()
    return sink


def sunk(
    sink: Any,
    rows: int = 20,
    tasks: int = 2,
    beside: Callable[[TransactionalTopologyBuilder], None] = lambda builder: None,
    opaque: bool = False,
    semantic: Semantic = Semantic.EXACTLY_ONCE,
    partitions: Any = None,
) -> Topology:
    """Return topology "t": two partitions of numbers, in batches of 4, into a sink; `beside` declares what else."""
    kind = OpaqueMemoryTransactionalSpout if opaque else MemoryTransactionalSpout
    given = partitions or {p: [[n] for n in range(p, rows, 2)] for p in range(2)}
    builder = TransactionalTopologyBuilder("t", "spout", kind(given, Fields("n"), 2))
    builder.set_bolt("sink", TwoPhaseCommitBolt(sink, semantic), tasks).shuffle_grouping("spout")
    beside(builder)
    return builder.build_topology()


def run_sunk(topology: Topology, server: MemoryStateServer | None = None, config: Any = None) -> MemoryStateServer:
    """Run topology "t" until all is committed."""
    server = server or MemoryStateServer()
    settings = {**SWEPT, **(config or {})}
    with InProcessCluster(server) as cluster:
        cluster.submit_topology("t", settings, topology).await_drained(60)
    return server


def settled(sink: ScriptedSink) -> None:
    """See each row visible once, transaction after transaction, and nothing left behind."""
    assert sorted(sink.rows) == ALL
    order = [txid_of(label) for label in sink.committed]
    assert order == sorted(order), "law 1 (order)"
    assert sink.prepared == []


def dies(server: MemoryStateServer, topology: Any) -> None:
    """Run until the driver is fenced, as on order: its state goes on without it."""
    with InProcessCluster(server) as cluster:
        handle = cluster.submit_topology("t", SWEPT, topology)
        with pytest.raises(Fenced):
            handle.await_drained(60)


def dies_with_undecided(
    server: MemoryStateServer, topology: Any, committing: ScriptedSink, sink: ScriptedSink
) -> list[str]:
    """Let a driver die in the first commit of one sink; return what is on record of later transactions of a sink."""

    def undecided() -> list[str]:
        values = list(server.topologies["t"].nodes.values())
        later = [label for label in sink.prepared if txid_of(label) > 1]
        return [label for label in later if any(label.encode() in value for value in values)]

    def vanishes() -> None:
        eventually(undecided)
        server.vanish("t")

    committing.script.on("commit", 1, vanishes)
    dies(server, topology)
    return undecided()
