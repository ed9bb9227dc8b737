"""What the modules of the laws share: a topology that sums, and ways to run one in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from stormline import (
    BaseTransactionalBolt,
    FailedException,
    Fields,
    ICommitter,
    MemoryTransactionalSpout,
    TopologyHandle,
    TransactionalTopologyBuilder,
    TransactionAttempt,
    Tuple,
    compile_topology,
)
from stormline.runtime.cluster.in_process_engine import InProcessEngine
from stormline.runtime.cluster.submission import start_topology
from stormline.runtime.state.memory_store import MemoryStateServer, MemoryStateStore
from stormline.runtime.state.stored_value import unseal
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.topology.serialization import PLAIN
from stormline.topology.topology import Topology

ID = "laws"
TIMEOUT_SECS = 60

AtCommit = Callable[[TransactionAttempt, list[Any]], None]


class Commits(BaseTransactionalBolt, ICommitter):
    """A committer that hands each batch to `at_commit`: a class attribute, since each attempt has a fresh copy."""

    at_commit: AtCommit

    def prepare(self, conf: Any, context: Any, collector: Any, attempt: TransactionAttempt) -> None:
        self.attempt = attempt
        self.rows: list[Any] = []

    def execute(self, tup: Tuple) -> None:
        self.rows.append(tup[1])

    def finish_batch(self) -> None:
        type(self).at_commit(self.attempt, self.rows)


def committing(at_commit: AtCommit) -> Commits:
    """Return a committer with an `at_commit` of its own."""

    class CommitsHere(Commits):
        pass

    CommitsHere.at_commit = staticmethod(at_commit)
    return CommitsHere()


def numbers(count: int, take: int = 5) -> MemoryTransactionalSpout:
    """Return a spout of 0, 1, 2, … in batches of `take`."""
    return MemoryTransactionalSpout({0: list(range(count))}, Fields("number"), take)


def topology_of(spout: Any, at_commit: AtCommit, *between: Callable[[TransactionalTopologyBuilder], Any]) -> Topology:
    """Return spout → what `between` declares, if anything (its last bolt is "last") → committer."""
    builder = TransactionalTopologyBuilder(ID, "spout", spout)
    for declare in between:
        declare(builder)
    builder.set_bolt("commits", committing(at_commit)).global_grouping("last" if between else "spout")
    return builder.build_topology()


@contextmanager
def running(
    topology: Topology,
    server: MemoryStateServer | None = None,
    make_engine: Callable[[TaskEnvironment], InProcessEngine] = InProcessEngine,
    **config: Any,
) -> Iterator[TopologyHandle]:
    """Run a topology in this process; keys of `config` have `__` for the dots."""
    where = server or MemoryStateServer()
    settings = {"topology.max.spout.pending": 4, **{key.replace("__", "."): value for key, value in config.items()}}
    plan = compile_topology(topology, settings)
    handle = start_topology(ID, plan, lambda lost: MemoryStateStore.open(where, ID, on_lost=lost), make_engine)
    try:
        yield handle
    finally:
        handle.kill()


def drain(topology: Topology, *args: Any, **config: Any) -> None:
    """Run a topology until its spout has nothing left and all is committed."""
    with running(topology, *args, **config) as handle:
        handle.await_drained(TIMEOUT_SECS)


def stored(server: MemoryStateServer, path: str) -> Any:
    """Return what is durable at a path of the topology's state, or None."""
    with server.lock:
        sealed = server.topologies[ID].nodes.get(path)
    return None if sealed is None else unseal(sealed, PLAIN, path)


def txid_recorded(server: MemoryStateServer) -> int:
    """Return the last transaction that is durably recorded as committed."""
    record = stored(server, "committed")
    return 0 if record is None else int(record["txid"])


def fail_once(*txids: int) -> Callable[[TransactionAttempt], None]:
    """Return a function that raises `FailedException` the first time it is called for each of `txids`."""
    waiting = set(txids)

    def strike(attempt: TransactionAttempt) -> None:
        if attempt.transaction_id in waiting:
            waiting.remove(attempt.transaction_id)
            raise FailedException(f"on order, for {attempt}")

    return strike
