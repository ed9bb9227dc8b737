"""examples.flight_delays without Spark: what it counts, and databases that do not fit the topology's state."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from examples import flight_delays
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from stormline.runtime.errors import TopologyFailed
from tests.kits.flights import stored_results


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the example read what `fly` writes, ten flights a batch, and store it here."""
    monkeypatch.setenv("FLIGHT_DELAYS_CSV", str(tmp_path / "*.csv"))
    monkeypatch.setenv("FLIGHT_DELAYS_STORE", f"sqlite:{tmp_path / 'flights.sqlite'}")
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
    }
    report = flight_delays.report().splitlines()
    assert report[0] == f"5 flights, in sqlite:{database}"
    assert [line.split() for line in report[3:5]] == [["UA", "3", "17", "8.5"], ["HA", "2", "0", "–"]]
    assert [line.split() for line in report[-2:]] == [["EWR", "7:00", "1"], ["JFK", "7:00", "2"]]


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
    message = r"holds transaction \d of topology 'flight-delays'(, and this is transaction 1| under another commit id)"
    with InProcessCluster() as cluster, pytest.raises(TopologyFailed, match=message) as failed:
        run(cluster)
    assert "remove what the store holds: a database's tables (`stormline state tables` names them)" in str(failed.value)
    assert dump(database) == before


def test_a_database_of_one_transaction_that_outlived_the_state_is_refused_too(database: Path) -> None:
    fly(database.parent, "a", ["UA,1,JFK,9"] * 10)
    with InProcessCluster() as cluster:
        assert run(cluster) == 1
    message = r"holds transaction 1 of topology 'flight-delays' under another commit id"
    with InProcessCluster() as cluster, pytest.raises(TopologyFailed, match=message):
        run(cluster)


def test_a_state_that_outlived_the_database_is_refused(database: Path) -> None:
    fly(database.parent, "a", ["UA,1,JFK,9"] * 60)
    with InProcessCluster() as cluster:
        assert run(cluster) == 6
        database.unlink()
        assert run(cluster) == 6
        fly(database.parent, "b", ["UA,1,JFK,9"] * 10)
        message = r"holds transaction 0 of topology 'flight-delays' \(0: nothing\), and the next one to commit is 7"
        with pytest.raises(TopologyFailed, match=message):
            run(cluster)
