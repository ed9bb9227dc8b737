"""A committer whose bolt stores in a memory store, and does what a script says; groups as they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stormline import (
    BaseTransactionalBolt,
    Config,
    Fields,
    ICommitter,
    MemoryTransactionalSpout,
    TransactionalTopologyBuilder,
    TransactionAttempt,
    compile_topology,
)
from stormline.runtime.coordination.commit_queue import CommitQueue
from stormline.runtime.coordination.committer import CommitEnded, Committer
from stormline.runtime.messages.wave import AttemptResult
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.state import MemoryStore, TransactionalMap
from stormline.topology.plan import Plan
from tests.kits.committing import Scripts, Store
from tests.kits.components import eventually

STORE = MemoryStore("groups", timeout_secs=0.05)
SEEN = TransactionalMap(STORE, "seen", key={"batch": int}, value={"of": int})
Script = Callable[["Seen"], object]
SCRIPTS: dict[int, Script] = {}
RAN: list[str] = []


class Seen(BaseTransactionalBolt, ICommitter):
    """Stores that its batch was seen, then does what the script of its txid says."""

    effects_in = STORE

    def prepare(self, conf: Any, context: Any, collector: Any, batch_id: TransactionAttempt) -> None:
        self.conf, self.context, self.attempt = conf, context, batch_id

    def execute(self, tup: Any) -> None:
        pass

    def finish_batch(self) -> None:
        RAN.append(str(self.attempt))
        txid = self.attempt.transaction_id
        SEEN.begin_commit(self.context, self.attempt).put(txid, txid)
        SCRIPTS.get(txid, lambda bolt: None)(self)


def plan_of(**config: Any) -> Plan:
    """Return a topology of that bolt alone."""
    builder = TransactionalTopologyBuilder("t", "spout", MemoryTransactionalSpout({0: [1]}, Fields("n"), 1))
    builder.set_bolt("seen", Seen()).global_grouping("spout")
    return compile_topology(builder.build_topology(), Config(config))


class GroupRig:
    """The real committer; `let_begin` lets begin what was added, together where it may."""

    def __init__(self, timeout_secs: float | None = None, epoch: int = 1) -> None:
        self.env = TaskEnvironment(plan_of(), epoch)
        self.trail: list[Any] = []
        self.store = Store(self.trail)
        self.store.up = False
        self.queue = CommitQueue(0, 0, group_max=8)
        self.ended: list[CommitEnded] = []
        engine: Any = Scripts()
        store: Any = self.store
        self.committer = Committer(self.env, engine, store, self.queue, lambda: None, timeout_secs)

    def add(self, *txids: int, attempt: int = 1) -> None:
        """Let attempts wait, one behind the other."""
        self.env.work_on({TransactionAttempt(txid, attempt): 7000 + txid for txid in txids})
        for txid in txids:
            self.committer.add(AttemptResult(TransactionAttempt(txid, attempt)))

    def let_begin(self, ends: int) -> list[str]:
        """Let begin what waits; return of so many ends, in order, whose they are, and why they failed."""
        self.store.up = True

        def enough() -> bool:
            self.ended += self.committer.take_ended()
            return len(self.ended) >= ends

        eventually(enough)
        self.store.up = False
        found, self.ended = self.ended, []
        return [f"{end.attempt}{'' if end.failure is None else ' ' + end.failure.message}" for end in found]

    def close(self) -> None:
        """End it."""
        self.committer.close()
        self.committer.thread.join()
        for close in self.env.commit_resources.closes():
            close()
