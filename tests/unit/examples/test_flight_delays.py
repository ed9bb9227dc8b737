"""examples.flight_delays without Spark: what it counts, and databases that do not fit the topology's state."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from examples import flight_delays
from examples.flight_store import Delays, FlightStore, StoreMismatch, Token
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from stormline.runtime.errors import TopologyFailed
from tests.kits.flights import stored_results


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the example read what `fly` writes, ten flights a batch, and store it here."""
    monkeypatch.setenv("FLIGHT_DELAYS_CSV", str(tmp_path / "*.csv"))
    monkeypatch.setenv("FLIGHT_DELAYS_DATABASE", str(tmp_path / "flights.sqlite"))
    monkeypatch.setattr(flight_delays, "ROWS_PER_BATCH", 10)
    return tmp_path / "flights.sqlite"


def fly(directory: Path, name: str, rows: list[str]) -> None:
    (directory / f"{name}.csv").write_text("\n".join(["carrier,dep_delay,origin,hour", *rows, ""]))


def run(cluster: InProcessCluster) -> int:
    handle = cluster.submit_topology("flights", flight_delays.config, flight_delays.topology())
    try:
        return handle.await_drained(20)
    finally:
        handle.kill()


def dump(database: Path) -> list[str]:
    with closing(sqlite3.connect(database)) as db:
        return list(db.iterdump())


def test_a_cancelled_flight_counts_and_adds_no_delay_and_of_equal_hours_the_earliest_is_busiest(database: Path) -> None:
    fly(database.parent, "a", ["UA,-3,JFK,9", "UA,NA,JFK,7", "UA,20,EWR,7", "HA,NA,JFK,7", "HA,NA,JFK,9"])
    with InProcessCluster() as cluster:
        assert run(cluster) == 1
    assert stored_results(database) == {
        "carriers": [("HA", 2, 0, 0), ("UA", 3, 2, 17)],
        "departures": [("EWR", 7, 1), ("JFK", 7, 2), ("JFK", 9, 2)],
        "busiest_hours": [("EWR", 7, 1), ("JFK", 7, 2)],
    }
    report = flight_delays.report().splitlines()
    assert report[0] == f"5 flights in 1 transactions, in {database}"
    assert [line.split() for line in report[3:5]] == [["UA", "3", "17", "8.5"], ["HA", "2", "0", "–"]]


def test_a_delay_that_is_no_number_stops_the_topology_and_names_the_line(database: Path) -> None:
    fly(database.parent, "a", ["UA,3,JFK,9", "UA,late,JFK,7"])
    message = r"a\.csv:3: .*column 'dep_delay' is 'late', which minutes does not take"
    with InProcessCluster() as cluster, pytest.raises(TopologyFailed, match=message):
        run(cluster)


def test_a_database_that_outlived_the_state_is_refused_and_left_alone(database: Path) -> None:
    fly(database.parent, "a", ["UA,1,JFK,9"] * 60)
    with InProcessCluster() as cluster:
        assert run(cluster) == 6
    before = dump(database)
    message = "holds transaction 6 of epoch 1 of topology 'flight-delays', and this is transaction 1 of epoch 1: the "
    with InProcessCluster() as cluster, pytest.raises(TopologyFailed, match=message) as failed:
        run(cluster)
    assert "to count from the start, remove the database too" in str(failed.value)
    assert dump(database) == before


def test_a_database_of_one_transaction_that_outlived_the_state_is_refused_too(database: Path) -> None:
    fly(database.parent, "a", ["UA,1,JFK,9"] * 10)
    with InProcessCluster() as cluster:
        assert run(cluster) == 1
    message = "holds transaction 1 of epoch 1 .* and this is transaction 1 of epoch 1"
    with InProcessCluster() as cluster, pytest.raises(TopologyFailed, match=message):
        run(cluster)


def test_a_state_that_outlived_the_database_is_refused(database: Path) -> None:
    fly(database.parent, "a", ["UA,1,JFK,9"] * 60)
    with InProcessCluster() as cluster:
        assert run(cluster) == 6
        database.unlink()
        assert run(cluster) == 6
        with pytest.raises(
            StoreMismatch, match=r"holds no transaction: .* the database was removed after; .* state too"
        ):
            flight_delays.report()
        assert not database.exists()
        fly(database.parent, "b", ["UA,1,JFK,9"] * 10)
        message = "holds transaction 0 of topology 'flight-delays', and the next one to commit is 7: the database was "
        with pytest.raises(TopologyFailed, match=message):
            run(cluster)


def test_a_stored_transaction_is_skipped_and_an_older_driver_is_refused(tmp_path: Path) -> None:
    store = FlightStore(tmp_path / "flights.sqlite", "flight-delays")
    ten = {"UA": Delays(10, 9, 90)}, {("JFK", 9): 10}
    store.add(Token(epoch=1, txid=1, attempt=1, commit_id=7), *ten)
    store.add(Token(epoch=2, txid=1, attempt=2, commit_id=7), *ten)
    assert stored_results(store.path)["carriers"] == [("UA", 10, 9, 90)]
    for zombie in (Token(epoch=1, txid=1, attempt=1, commit_id=7), Token(epoch=1, txid=2, attempt=1, commit_id=8)):
        with pytest.raises(StoreMismatch, match="another driver has taken over"):
            store.add(zombie, *ten)
    store.add(Token(epoch=2, txid=2, attempt=2, commit_id=8), *ten)
    assert stored_results(store.path)["carriers"] == [("UA", 20, 18, 180)]
    assert store.txid_stored() == 2
    other = FlightStore(store.path, "flight-delays-2")
    with pytest.raises(StoreMismatch, match=r"holds what topology 'flight-delays' has counted, .* is topology 'flight"):
        other.add(Token(epoch=1, txid=1, attempt=1, commit_id=7), *ten)
    with pytest.raises(StoreMismatch, match=r"transaction 2 of epoch 2 .* is transaction 2 .* removed or set back"):
        store.add(Token(epoch=3, txid=2, attempt=3, commit_id=9), *ten)
    assert stored_results(store.path)["carriers"] == [("UA", 20, 18, 180)]
