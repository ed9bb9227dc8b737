"""What `examples.flight_delays` must come to, by pandas; and what it did come to, out of its database."""

from __future__ import annotations

import importlib.util
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas
import pytest

from examples.flights_data import PACKAGE, flights_csv

needs_flights = pytest.mark.skipif(
    importlib.util.find_spec(PACKAGE) is None, reason=f"the package {PACKAGE} is not installed"
)

Results = dict[str, list[tuple[Any, ...]]]


def expected_results(csv: Path | str | None = None) -> Results:
    """Compute the results from the same file, flights.csv or another one."""
    flights = pandas.read_csv(csv or flights_csv(), usecols=["carrier", "dep_delay", "origin", "hour"])
    carriers = flights.groupby("carrier")["dep_delay"].agg(["size", "count", "sum"]).astype(int)
    departures = flights.groupby(["origin", "hour"]).size()
    return {
        "carriers": [tuple(row) for row in carriers.reset_index().values.tolist()],
        "departures": [(*key, count) for key, count in departures.items()],
    }


def stored_results(database: Path) -> Results:
    """Read the results, and check that no value was stored by a later transaction than the last."""
    columns = {
        "carriers": "carrier, flights, departed, ifnull(delay_minutes, 0)",
        "departures": "origin, hour, flights",
    }
    last = txid_stored(database)
    with closing(sqlite3.connect(database)) as db:
        for table in columns:
            [(least, greatest)] = db.execute(f"SELECT min(txid), max(txid) FROM {table}").fetchall()
            assert 1 <= least <= greatest <= last
        return {
            table: db.execute(f"SELECT {names} FROM {table} ORDER BY 1, 2").fetchall()
            for table, names in columns.items()
        }


def txid_stored(database: Path) -> int:
    """Return the last transaction that a store holds; 0 where there is none yet."""
    if not database.is_file():
        return 0
    with closing(sqlite3.connect(database)) as db:
        try:
            found = db.execute("SELECT max(txid) FROM stormline_fence").fetchone()
        except sqlite3.OperationalError:  # its driver is about to make the table
            return 0
        return int(found[0] or 0)
