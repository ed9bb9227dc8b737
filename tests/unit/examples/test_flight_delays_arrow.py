"""examples.flight_delays_arrow: exactly what examples.flight_delays and pandas come to, replays included."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from examples import flight_delays, flight_delays_arrow
from stormline import FailedException
from stormline.runtime.cluster.in_process_cluster import InProcessCluster
from stormline.state.persistent_aggregate import PartialBatches
from stormline.state.sqlite_connection import SQLiteConnection
from tests.kits.flights import Results, expected_results, stored_results

ROWS = 95


@pytest.fixture
def flights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write flights into two files, those of a whole batch cancelled, and let both examples read ten a batch."""
    chance = random.Random(1)
    lines = []
    for row in range(ROWS):
        delay: Any = "NA" if 40 <= row < 60 or chance.random() < 0.2 else chance.randint(-20, 90)
        lines.append(
            f"{chance.choice(['UA', 'AA', 'B6'])},{delay},{chance.choice(['JFK', 'EWR'])},{chance.randint(5, 8)}"
        )
    lines[44] = "HA,NA,LGA,5"
    for name, part in (("a", lines[:37]), ("b", lines[37:])):
        (tmp_path / f"{name}.csv").write_text("\n".join(["carrier,dep_delay,origin,hour", *part, ""]))
    monkeypatch.setenv("FLIGHT_DELAYS_CSV", str(tmp_path / "[ab].csv"))
    monkeypatch.setattr(flight_delays, "ROWS_PER_BATCH", 10)
    whole = tmp_path / "whole.csv"
    whole.write_text("\n".join(["carrier,dep_delay,origin,hour", *lines, ""]))
    return whole


def results(example: ModuleType, database: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Results, int]:
    """Run an example to its end; return what it stored, and how many attempts were replayed."""
    monkeypatch.setenv("FLIGHT_DELAYS_STORE", f"sqlite:{database}")
    with InProcessCluster() as cluster:
        handle = cluster.submit_topology("flights", example.config, example.topology())
        try:
            assert handle.await_drained(20) == 10
            return stored_results(database), handle.snapshot().replays
        finally:
            handle.kill()


@pytest.mark.parametrize("replays", [False, True])
def test_rows_columns_and_pandas_come_to_the_same(
    flights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replays: bool
) -> None:
    if replays:
        fail_once(monkeypatch)
    by_columns, replayed = results(flight_delays_arrow, tmp_path / "columns.sqlite", monkeypatch)
    by_rows, _ = results(flight_delays, tmp_path / "rows.sqlite", monkeypatch)
    assert by_columns == by_rows == expected_results(flights)
    assert ("HA", 1, 0, 0) in by_columns["carriers"]
    assert bool(replayed) == replays
    assert flight_delays_arrow.report().splitlines()[0] == f"{ROWS} flights, in sqlite:{tmp_path / 'rows.sqlite'}"


def fail_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail the first transaction while it is processed, and 2 and 5 after their effects."""
    finish, commit = PartialBatches.finish_batch, SQLiteConnection.commit
    failed, commits = set[int](), itertools.count(1)

    def finish_or_fail(self: Any) -> None:
        finish(self)
        if self.groups and not failed:
            failed.add(0)
            raise FailedException("after it emitted")

    def commit_and_fail(self: Any) -> None:
        commit(self)
        if next(commits) in (2, 6):
            raise FailedException("after the effect")

    monkeypatch.setattr(PartialBatches, "finish_batch", finish_or_fail)
    monkeypatch.setattr(SQLiteConnection, "commit", commit_and_fail)


def test_the_spout_of_the_example_emits_columns(flights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from stormline.spouts.file import csv_columns

    tables: list[int] = []
    read = csv_columns.CsvColumns.read

    def noted(self: Any, data: bytes, rows: int) -> Any:
        table = read(self, data, rows)
        tables.append(table.num_rows)
        return table

    monkeypatch.setattr(csv_columns.CsvColumns, "read", noted)
    results(flight_delays_arrow, tmp_path / "columns.sqlite", monkeypatch)
    assert sum(tables) == ROWS
