"""What a real PostgreSQL does to a commit: a deadlock, a serialization failure, a connection left in a transaction."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from stormline import BaseTransactionalBolt, FailedException, ICommitter, TransactionAttempt, Tuple
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from tests.chaos import ledger
from tests.chaos.ledger import Ledger, Range, Token
from tests.chaos.numbers import Sums
from tests.kits.components import eventually, line, numbers
from tests.services.postgresql import PostgreSQL

TOPOLOGY = "broken"
TROUBLED = TransactionAttempt(2, 1)


@pytest.fixture
def dsn(postgresql: PostgreSQL) -> Iterator[str]:
    with psycopg.connect(postgresql.dsn()) as db:
        for table in ("fence", "state", "ledger", "ranges", "skips", "refusals"):
            db.execute(f"DELETE FROM {table}")
        db.execute("INSERT INTO fence VALUES (%s, 0, 0, 0, 0)", (TOPOLOGY,))
    yield postgresql.dsn()
    for idle in ledger._idle.pop(postgresql.dsn(), []):
        idle.close()


class Adds(BaseTransactionalBolt, ICommitter):
    """Adds the numbers of a batch up in PostgreSQL; `trouble` happens to the first attempt of transaction 2."""

    trouble: Any = None

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn

    def prepare(self, conf: Any, context: Any, collector: Any, attempt: TransactionAttempt) -> None:
        self.token = Token(context.epoch, attempt.transaction_id, attempt.attempt_id)
        self.attempt, self.commit_id = attempt, context.commit_id(attempt)
        self.values: list[int] = []

    def execute(self, tup: Tuple) -> None:
        self.values.append(tup[1])

    def finish_batch(self) -> None:
        sums = {0: Sums(len(self.values), sum(self.values), 0)}
        trouble = Adds.trouble if self.attempt == TROUBLED else None
        within = (lambda: None) if trouble is None else (lambda: trouble(self.dsn))
        ranges = {0: Range(0, 1, 1)}
        Ledger(self.dsn, TOPOLOGY).add(self.token, 0, sums, ranges, within, commit_id=self.commit_id)


def drain(dsn: str, monkeypatch: pytest.MonkeyPatch, trouble: Any) -> int:
    """Let a topology add 40 numbers; return how often it replayed."""
    monkeypatch.setattr(Adds, "trouble", staticmethod(trouble))
    topology = line(TOPOLOGY, numbers(40), 5, lambda b: b.set_bolt("store", Adds(dsn)).global_grouping("spout"))
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology(TOPOLOGY, {}, topology)
        handle.await_drained(60)
        return handle.snapshot().replays


def check(dsn: str) -> None:
    """See that each of the 40 numbers counts once, and that each transaction was applied once, in order."""
    with psycopg.connect(dsn) as db:
        assert db.execute("SELECT count, total FROM state").fetchall() == [(40, sum(range(40)))]
        assert db.execute("SELECT txid FROM ledger ORDER BY serial").fetchall() == [(1,), (2,), (3,), (4,)]


_current: list[psycopg.Connection[Any]] = []


@pytest.fixture(autouse=True)
def connections(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep hold of the connection that a commit uses."""
    pass_fence = Ledger._pass_fence

    def noted(self: Ledger, db: psycopg.Connection[Any], token: Token, task: int, commit_id: int) -> bool:
        _current[:] = [db]
        return pass_fence(self, db, token, task, commit_id)

    monkeypatch.setattr(Ledger, "_pass_fence", noted)
    yield
    _current.clear()


def in_the_commit(dsn: str) -> psycopg.Connection[Any]:
    """Return the connection of the commit that runs."""
    (db,) = _current
    return db


def waits_for_a_lock(db: psycopg.Connection[Any]) -> bool:
    """Return whether any connection does."""
    with db.transaction():
        return db.execute("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'").fetchone() is not None


def test_a_commit_that_is_the_victim_of_a_deadlock_is_replayed_and_counts_once(
    dsn: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Another program holds a row that the commit wants, and wants the fence that the commit holds."""
    caplog.set_level("INFO", "stormline")
    with psycopg.connect(dsn) as other, psycopg.connect(dsn) as setup:
        setup.execute("INSERT INTO skips VALUES ('held', 0, 0, 0, 0)")
        setup.commit()
        other.execute("UPDATE skips SET txid = 1 WHERE topology = 'held'")
        threads: list[threading.Thread] = []

        def deadlock(dsn: str) -> None:
            def want_the_fence() -> None:
                other.execute("SET deadlock_timeout = '60s'")  # so that it is the commit that is ended
                other.execute("SELECT 1 FROM fence WHERE topology = %s FOR UPDATE", (TOPOLOGY,))
                other.rollback()

            threads.append(threading.Thread(target=want_the_fence))
            threads[0].start()
            eventually(lambda: waits_for_a_lock(setup))  # the server looks for a deadlock once, a second from now
            in_the_commit(dsn).execute("UPDATE skips SET txid = 2 WHERE topology = 'held'")

        replays = drain(dsn, monkeypatch, deadlock)
        threads[0].join(30)
    assert replays >= 1
    assert "DeadlockDetected" in caplog.text
    check(dsn)


def test_a_commit_that_cannot_be_serialized_is_replayed_and_counts_once(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server says so as it does where transactions that read each other's rows cannot all be right."""

    def trouble(dsn: str) -> None:
        in_the_commit(dsn).execute("DO $$ BEGIN RAISE serialization_failure; END $$")

    assert drain(dsn, monkeypatch, trouble) >= 1
    check(dsn)


def test_a_connection_whose_commit_was_broken_off_is_never_used_again(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken: list[psycopg.Connection[Any]] = []

    def trouble(dsn: str) -> None:
        broken.append(in_the_commit(dsn))
        assert broken[0].info.transaction_status is TransactionStatus.INTRANS
        raise FailedException("in the middle")

    assert drain(dsn, monkeypatch, trouble) >= 1
    assert broken[0].closed
    assert broken[0] not in ledger._idle[dsn]
    assert {db.info.transaction_status for db in ledger._idle[dsn]} == {TransactionStatus.IDLE}
    check(dsn)
