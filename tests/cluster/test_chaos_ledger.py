"""The ledger of the chaos runs on a real PostgreSQL: its fence, and the checker on what is planted in the tables."""

from __future__ import annotations

from collections import defaultdict

import psycopg
import pytest

from stormline import FailedException
from tests.chaos import ledger
from tests.chaos.checker import check
from tests.chaos.evidence import collect
from tests.chaos.ledger import Ledger, OutOfOrder, Range, Refused, Token
from tests.chaos.numbers import MODULUS, Sums, key_of, sums_by_key
from tests.chaos.processes import wait_until
from tests.services.postgresql import PostgreSQL

TOPOLOGY = "planted"
PARTITIONS, TASKS, ROWS_A_TRANSACTION, TRANSACTIONS = 2, 2, 25, 6
ROWS = ROWS_A_TRANSACTION * TRANSACTIONS


@pytest.fixture
def dsn(postgresql: PostgreSQL) -> str:
    for idle in ledger._idle.pop(postgresql.dsn(), []):
        idle.close()
    with psycopg.connect(postgresql.dsn()) as db:
        for table in ("fence", "state", "ledger", "ranges", "skips", "refusals"):
            db.execute(f"DELETE FROM {table}")
        for task in range(TASKS):
            db.execute("INSERT INTO fence VALUES (%s, %s, 0, 0, 0)", (TOPOLOGY, task))
    return postgresql.dsn()


def add(dsn: str, token: Token, task: int, commit_id: int = 7) -> None:
    """Commit one task of one transaction as the topology's committers do: keys by task, ranges by task."""
    first, end = (token.txid - 1) * ROWS_A_TRANSACTION, token.txid * ROWS_A_TRANSACTION
    sums: defaultdict[int, Sums] = defaultdict(Sums)
    for number in range(first * PARTITIONS, end * PARTITIONS):
        if key_of(number) % TASKS == task:
            sums[key_of(number)] = sums[key_of(number)].plus(Sums(1, number, number * number % MODULUS))
    ranges = {task: Range(first, end, end - first)}
    Ledger(dsn, TOPOLOGY).add(token, task, sums, ranges, commit_id=commit_id)


def run(dsn: str) -> None:
    for txid in range(1, TRANSACTIONS + 1):
        for task in range(TASKS):
            add(dsn, Token(1, txid, 1), task)


def violations(dsn: str) -> list[str]:
    source = sums_by_key(ROWS * PARTITIONS)
    return check(collect(dsn, TOPOLOGY, PARTITIONS, ROWS, TASKS, source, TRANSACTIONS))


def test_a_commit_that_comes_again_is_skipped_and_one_that_was_replaced_or_is_too_early_is_turned_away(
    dsn: str,
) -> None:
    add(dsn, Token(2, 1, 5), 0)
    add(dsn, Token(2, 1, 6), 0)
    for late in (Token(2, 1, 6), Token(2, 1, 5), Token(1, 2, 9), Token(1, 1, 99)):
        with pytest.raises(Refused, match=r"task 0 comes with \(\d, \d, \d+\), after \(2, 1, 6\)"):
            add(dsn, late, 0)
    with pytest.raises(OutOfOrder, match=r"\(3, 3, 7\), right after \(2, 1, 6\)"):
        add(dsn, Token(3, 3, 7), 0)
    with pytest.raises(OutOfOrder, match=r"\(3, 1, 7\), right after \(2, 1, 6\)"):
        add(dsn, Token(3, 1, 7), 0, commit_id=8)
    with psycopg.connect(dsn) as db:
        assert db.execute("SELECT txid, attempt FROM ledger").fetchall() == [(1, 5)]
        assert db.execute("SELECT count(*) FROM refusals").fetchall() == [(4,)]
        assert db.execute("SELECT attempt FROM skips").fetchall() == [(6,)]


def test_a_database_that_does_not_answer_fails_the_attempt_and_leaves_nothing(dsn: str, postgresql: PostgreSQL) -> None:
    with pytest.raises(FailedException, match="PostgreSQL: OperationalError"):
        Ledger(postgresql.dsn(1), TOPOLOGY).add(Token(1, 1, 1), 0, {}, {}, commit_id=7)
    add(dsn, Token(1, 1, 1), 0)
    (backend,) = postgresql.connections()  # the ledger keeps it
    backend.kill()
    backend.wait(10)
    with pytest.raises(FailedException, match="PostgreSQL: "):
        add(dsn, Token(1, 2, 1), 0)
    wait_until(postgresql.answers, 30)
    with psycopg.connect(dsn) as db:
        assert db.execute("SELECT txid FROM ledger").fetchall() == [(1,)]
    add(dsn, Token(1, 2, 2), 0)


def test_what_a_right_run_leaves_passes(dsn: str) -> None:
    run(dsn)
    assert violations(dsn) == []


@pytest.mark.parametrize(
    ("planted", "kind"),
    [
        ("DELETE FROM ledger WHERE txid = 3 AND task = 1", "missing"),
        ("DELETE FROM ranges WHERE txid = 3 AND partition = 1", "missing"),
        ("UPDATE state SET count = count - 1 WHERE key = 7", "missing"),
        ("UPDATE state SET count = count + 1 WHERE key = 7", "double"),
        ("INSERT INTO ledger (topology, txid, task, epoch, attempt, count, total, squares) SELECT topology, txid, "
         "task, epoch, attempt, count, total, squares FROM ledger WHERE txid = 6 AND task = 1", "double"),
        ("UPDATE state SET total = total + 1 WHERE key = 7", "wrong sum"),
        ("UPDATE ledger SET squares = squares - 1 WHERE txid = 2 AND task = 0", "wrong sum"),
        ("UPDATE ledger SET txid = 7 - txid", "out of order"),
        ("UPDATE ledger SET epoch = 2 WHERE txid = 1", "out of order"),
        ("UPDATE fence SET txid = 5 WHERE task = 0", "not the end"),
    ],
)  # fmt: skip
def test_what_is_planted_is_found(dsn: str, planted: str, kind: str) -> None:
    run(dsn)
    with psycopg.connect(dsn) as db:
        assert db.execute(planted).rowcount > 0
    assert kind in {violation.partition(":")[0] for violation in violations(dsn)}
