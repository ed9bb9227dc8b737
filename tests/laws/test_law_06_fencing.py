"""Law 6 (fencing): one owner; who is not the owner any more can write nothing. See docs/laws.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stormline import TransactionalTopologyBuilder, TransactionAttempt
from stormline.runtime.errors import AlreadyRunning, Fenced, SessionLost
from stormline.runtime.state.memory_store import MemoryStateServer, MemoryStateStore
from stormline.runtime.state.state_store import Put
from tests.laws.kit import ID, TIMEOUT_SECS, Commits, drain, numbers, running, topology_of, txid_recorded
from tests.unit.simulation.test_zookeeper import SimulatedBackend, backend

zookeeper = backend
"""The fixture: ZooKeeper's own store, over a simulated server."""


def test_a_second_driver_is_refused_while_the_first_one_lives() -> None:
    server = MemoryStateServer()
    with (
        running(topology_of(numbers(10), ignore), server),
        pytest.raises(AlreadyRunning, match=f"{ID}.*is run already by"),
    ):
        drain(topology_of(numbers(10), ignore), server)


def test_a_driver_that_was_taken_over_writes_nothing_more() -> None:
    server = MemoryStateServer()
    zombie = MemoryStateStore.open(server, ID)
    zombie.write([Put("a", 1)])
    server.vanish(ID)
    owner = MemoryStateStore.open(server, ID)
    assert owner.epoch == zombie.epoch + 1
    with pytest.raises(Fenced, match=f"epoch {zombie.epoch} is over, epoch {owner.epoch} owns the state"):
        zombie.write([Put("a", 2)])
    assert owner.get("a") == 1
    assert not zombie.connected()


def test_in_zookeeper_too_one_owner_writes_and_its_predecessor_does_not(zookeeper: SimulatedBackend) -> None:
    zombie = zookeeper.open(ID)
    zombie.write([Put("a", 1)])
    with pytest.raises(AlreadyRunning, match=f"{ID}.*is run already by"):
        zookeeper.open(ID)
    zookeeper.make_zombie(ID)
    owner = zookeeper.open(ID)
    assert owner.epoch == zombie.epoch + 1
    owner.write([Put("b", 1)])
    with pytest.raises(Fenced, match=f"epoch {owner.epoch} owns"):
        zombie.write([Put("a", 2)])
    owner.close()
    found = zookeeper.open(ID)
    assert (found.get("a"), found.get("b")) == (1, 1)


@pytest.mark.parametrize(("end", "error"), [("vanish", Fenced), ("expire", SessionLost)])
def test_a_driver_that_lost_its_topology_in_a_commit_records_nothing_and_ends(end: str, error: type[Exception]) -> None:
    server = MemoryStateServer()
    begun: list[int] = []
    owners: list[MemoryStateStore] = []

    def commit(attempt: TransactionAttempt, rows: list[Any]) -> None:
        begun.append(attempt.transaction_id)
        if attempt.transaction_id == 3:
            lose: Callable[[str], None] = getattr(server, end)
            lose(ID)
            owners.append(MemoryStateStore.open(server, ID))

    with running(topology_of(numbers(50), commit), server) as handle, pytest.raises(error):
        handle.await_drained(TIMEOUT_SECS)
    assert begun == [1, 2, 3], "no commit began after that"
    assert txid_recorded(server) == 2
    assert owners[0].get("committed")["txid"] == 2


def test_while_the_connection_is_suspended_no_commit_begins() -> None:
    server = MemoryStateServer()
    begun: list[int] = []

    def commit(attempt: TransactionAttempt, rows: list[Any]) -> None:
        begun.append(attempt.transaction_id)
        if attempt.transaction_id == 2:
            server.suspend(ID)

    with running(topology_of(numbers(50), commit), server) as handle:
        handle.await_committed(2, TIMEOUT_SECS)
        with pytest.raises(TimeoutError):
            handle.await_committed(3, 0.1)
        assert begun == [1, 2]
        server.suspend(ID, False)
        handle.await_drained(TIMEOUT_SECS)
    assert begun == list(range(1, 11))


def test_user_code_is_given_the_epoch_of_the_driver_that_runs_it() -> None:
    server = MemoryStateServer()
    tokens: list[tuple[int, int, int]] = []

    class Tells(Commits):
        def prepare(self, conf: Any, context: Any, collector: Any, attempt: TransactionAttempt) -> None:
            super().prepare(conf, context, collector, attempt)
            tokens.append((context.epoch, attempt.transaction_id, attempt.attempt_id))

        at_commit = staticmethod(ignore)

    for rows in (5, 10):
        builder = TransactionalTopologyBuilder(ID, "spout", numbers(rows))
        builder.set_bolt("commits", Tells()).global_grouping("spout")
        drain(builder.build_topology(), server)
    assert [token[:2] for token in tokens] == [(1, 1), (2, 2)]
    assert tokens == sorted(tokens)


def ignore(attempt: TransactionAttempt, rows: list[Any]) -> None:
    """Commit nothing."""
