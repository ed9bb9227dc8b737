"""The lives of the drivers of one topology, tests.topologies.keyed_sums: when one has ended, the next one goes on."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

from tests.cluster.driver_process import DriverProcess
from tests.topologies.keyed_sums import DATA, TRANSACTIONS

LIFE_SECS = 90.0
ENDS_SECS = 60.0
SOME = 5
"""Transactions that are committed before something happens to a driver."""


class Lives:
    """The lives of one topology's drivers."""

    def __init__(self, directory: Path) -> None:
        self.database = directory / "sums.sqlite"
        self.state_dir = directory / "state"
        self._output = directory / "output.txt"
        self._drivers: list[DriverProcess] = []

    def start(self, open_in: str, kill_at: str = "", *more: str) -> DriverProcess:
        env = {"KEYED_SUMS_DB": str(self.database), "KEYED_SUMS_OPEN": open_in, "KEYED_SUMS_KILL": kill_at}
        driver = DriverProcess("tests.topologies.keyed_sums", self.state_dir, self._output, env, *more)
        self._drivers.append(driver)
        return driver

    def start_and_commit(self) -> DriverProcess:
        """Start a driver, and wait until it has committed some transactions."""
        driver = self.start("finish_batch")
        assert driver.wait_until(lambda: self.txid_stored() >= SOME, LIFE_SECS), self.output
        return driver

    def stop_and_go_on(self, driver: DriverProcess) -> None:
        """See that a driver stops with an error before all is committed, and that the next one counts the rest once."""
        assert driver.end(ENDS_SECS) == 1, self.output
        assert SOME <= self.txid_stored() < TRANSACTIONS
        self.close()
        assert self.start("finish_batch").end(LIFE_SECS) == 0, self.output
        expected = Counter(key for rows in DATA.values() for key, _ in rows)
        with closing(sqlite3.connect(self.database)) as db:
            assert dict(db.execute("SELECT key, rows FROM sums").fetchall()) == expected

    def close(self) -> None:
        """See all processes end that the drivers had started."""
        left = [process for driver in self._drivers for process in driver.close()]
        self._drivers = []
        assert left == [], "processes of a killed driver did not end by themselves"

    @property
    def output(self) -> str:
        return self._output.read_text()

    def txid_stored(self) -> int:
        """Return the last transaction of which anything is stored."""
        if not self.database.exists():
            return 0
        with closing(sqlite3.connect(self.database, timeout=20)) as db:
            if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'commits'").fetchone():
                return 0
            (txid,) = db.execute("SELECT coalesce(max(txid), 0) FROM commits").fetchone()
            return int(txid)
