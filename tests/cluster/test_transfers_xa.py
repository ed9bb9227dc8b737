"""The example that transfers between two banks: whatever is killed, both have each transfer once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from examples import transfers_xa
from examples.transfers_xa import DATA, OPENING, PAYEES, PAYERS, TOPOLOGY
from stormline import CommitOutcome, FailedException, InProcessCluster, TransactionLabel
from stormline.errors import TopologyFailed
from stormline.state.xa import MariaDbXaSink, PostgresTwoPhaseSink
from stormline.state.xa.sink import SQLTwoPhaseSink
from tests.cluster.driver_process import DriverProcess
from tests.cluster.store_databases import MariaDBDatabase, PostgreSQLDatabase
from tests.kits.two_phase import labels_begin

LIFE_SECS = 600.0


class Banks:
    """Both databases, as the example finds them by the environment."""

    def __init__(self, payers: PostgreSQLDatabase, payees: MariaDBDatabase) -> None:
        self.payers = payers
        self.payees = payees
        self.env = {
            "TRANSFERS_POSTGRESQL": payers.dsn(),
            "TRANSFERS_MARIADB": payees.mariadb.url(payees.name),
        }

    def committed(self) -> int:
        """Return how many transfers the payees' bank shows: it is committed last."""
        return int(self.payees.sql("SELECT count(*) FROM credits")[0][0])

    def check(self) -> None:
        """See that each transfer is in both, once, and nothing is left prepared."""
        debits = self.payers.sql("SELECT transfer, amount FROM debits")
        credited = self.payees.sql("SELECT transfer, amount FROM credits")
        transfers = [row for rows in transfers_xa.DATA.values() for row in rows]
        expected = sorted((transfer, amount) for transfer, _, _, amount in transfers)
        assert sorted(map(tuple, debits)) == sorted(map(tuple, credited)) == expected
        right = Counter(dict.fromkeys((*PAYERS, *PAYEES), OPENING))
        for _, payer, payee, amount in transfers:
            right[payer] -= amount
            right[payee] += amount
        assert transfers_xa.balances() == right
        assert transfers_xa.report().splitlines()[-1].split() == ["in", "all", str(5 * OPENING)]
        for sink in self.sinks():
            assert list(sink.list_prepared(labels_begin(TOPOLOGY))) == []
            sink.close()

    def sinks(self) -> list[SQLTwoPhaseSink]:
        """Return a sink for each bank, to look what is prepared there."""
        return [
            PostgresTwoPhaseSink(transfers_xa.payers_bank(), "debits"),
            MariaDbXaSink(transfers_xa.payees_bank(), "credits"),
        ]

    def roll_back(self) -> None:
        """Roll back what is left prepared: it would hold its locks for ever."""
        for sink in self.sinks():
            for left in sink.list_prepared(labels_begin(TOPOLOGY)):
                sink.abort(left.handle)
            sink.close()


@pytest.fixture
def banks(
    on_postgresql: PostgreSQLDatabase, on_mariadb: MariaDBDatabase, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Banks]:
    made = Banks(on_postgresql, on_mariadb)
    for name, value in made.env.items():
        monkeypatch.setenv(name, value)
    transfers_xa.make_tables()
    yield made
    made.roll_back()


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fifth of the transfers."""
    monkeypatch.setattr(transfers_xa, "DATA", {p: rows[:20] for p, rows in DATA.items()})


def run() -> None:
    with InProcessCluster() as cluster, cluster.submit(transfers_xa.topology(), transfers_xa.config) as handle:
        handle.await_drained(timeout_secs=LIFE_SECS)


def test_the_balances_are_right(banks: Banks, few: None) -> None:
    run()
    banks.check()


def test_replies_that_are_lost_and_a_bank_that_fails_leave_each_transfer_once(
    banks: Banks, few: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = Counter({"pre_commit": 2, "commit": 2})

    def failing(call: str, real: Any) -> Any:
        def called(sink: Any, what: Any) -> Any:
            result = real(sink, what)
            if left[call] > 0:
                left[call] -= 1
                raise FailedException("the reply was lost")
            return result

        return called

    for kind in (PostgresTwoPhaseSink, MariaDbXaSink):
        for call in ("pre_commit", "commit"):
            monkeypatch.setattr(kind, call, failing(call, getattr(kind, call)))
    run()
    assert not +left
    banks.check()


def test_a_transfer_that_an_operator_has_rolled_back_halts_and_nothing_later_is_committed(
    banks: Banks, few: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = PostgresTwoPhaseSink.commit

    def rolled_back_before(sink: PostgresTwoPhaseSink, handle: Any) -> CommitOutcome:
        label = TransactionLabel.read(handle[0])
        assert label is not None
        if label.txid == 3:
            banks.payers.sql(f"ROLLBACK PREPARED '{'@'.join(handle)}'")
        return commit(sink, handle)

    monkeypatch.setattr(PostgresTwoPhaseSink, "commit", rolled_back_before)
    with pytest.raises(
        TopologyFailed, match=r"the sink of bolt 'debits' has lost transaction transfers_xa_\w+-debits_"
    ):
        run()
    numbers = [[row[0] for row in rows] for rows in transfers_xa.DATA.values()]
    committed = sorted(number for rows in numbers for number in rows[:4])
    assert sorted(number for (number,) in banks.payers.sql("SELECT transfer FROM debits")) == committed


@pytest.mark.proof
def test_a_driver_that_is_killed_again_and_again_leaves_each_transfer_once(banks: Banks, tmp_path: Path) -> None:
    output = tmp_path / "output.txt"

    def start() -> DriverProcess:
        return DriverProcess("examples.transfers_xa", tmp_path / "state", output, banks.env)

    for wanted in (4, 60, 120):
        driver = start()
        try:
            seen = driver.wait_until(lambda wanted=wanted: banks.committed() >= wanted, LIFE_SECS)  # type: ignore[misc]
            assert seen, output.read_text()
            driver.kill()
        finally:
            assert driver.close() == []
    assert banks.committed() < sum(map(len, DATA.values())), "it was killed on the way"
    last = start()
    try:
        assert last.end(LIFE_SECS) == 0, output.read_text()
    finally:
        assert last.close() == []
    banks.check()
