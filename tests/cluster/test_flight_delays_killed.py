"""The main job by its command, killed twice on the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.flights_data import flights_csv
from tests.cluster.driver_process import DriverProcess
from tests.kits.flights import expected_results, needs_flights, stored_results, txid_stored

pytestmark = pytest.mark.proof

LIFE_SECS = 120.0


@needs_flights
def test_killed_and_resumed_it_equals_what_pandas_computes(tmp_path: Path) -> None:
    database, output = tmp_path / "flights.sqlite", tmp_path / "output.txt"
    env = {"FLIGHT_DELAYS_CSV": str(flights_csv(tmp_path)), "FLIGHT_DELAYS_STORE": f"sqlite:{database}"}
    drivers: list[DriverProcess] = []

    def start() -> DriverProcess:
        few_at_once = ("--conf", "topology.max.spout.pending=4")
        drivers.append(DriverProcess("examples.flight_delays", tmp_path / "state", output, env, *few_at_once))
        return drivers[-1]

    try:
        for txid in (6, 17):
            driver = start()
            assert driver.wait_until(lambda: txid_stored(database) >= txid, LIFE_SECS), output.read_text()  # noqa: B023
            driver.kill()
            assert txid <= txid_stored(database) < 34
        assert start().end(LIFE_SECS) == 0, output.read_text()
    finally:
        for driver in drivers:
            driver.close()
    assert stored_results(database) == expected_results()
    assert txid_stored(database) == 34
    assert "336,776 flights, in sqlite:" in output.read_text()
