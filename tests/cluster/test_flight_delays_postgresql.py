"""examples.flight_delays in a PostgreSQL, by its one setting."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from examples import flight_delays
from stormline import InProcessCluster
from tests.services.postgresql import PostgreSQL


def test_one_setting_leads_to_another_database(
    postgresql: PostgreSQL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(postgresql.dsn(), autocommit=True) as db:
        db.execute("CREATE SCHEMA flights_by_setting")
    (tmp_path / "a.csv").write_text("carrier,dep_delay,origin,hour\nUA,-3,JFK,9\nUA,20,EWR,7\nHA,NA,JFK,9\n")
    monkeypatch.setenv("FLIGHT_DELAYS_CSV", str(tmp_path / "*.csv"))
    monkeypatch.setenv("FLIGHT_DELAYS_STORE", "postgresql:env:FLIGHTS_DSN")
    monkeypatch.setenv("FLIGHTS_DSN", f"{postgresql.dsn()} options=-csearch_path=flights_by_setting")
    with InProcessCluster() as cluster, cluster.submit(flight_delays.topology(), flight_delays.config) as handle:
        assert handle.await_drained(60) == 1
    lines = flight_delays.report().splitlines()
    assert lines[0] == "3 flights, in postgresql:env:FLIGHTS_DSN"
    assert [line.split() for line in lines[3:5]] == [["UA", "2", "17", "8.5"], ["HA", "1", "0", "–"]]
    assert lines[-1].split() == ["JFK", "9:00", "2"]
