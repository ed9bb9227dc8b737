"""Each example under a LocalCluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from pyspark import SparkContext

from examples import design_phases, flight_delays, flight_delays_arrow, global_count, words
from stormline import LocalCluster
from tests.kits.flights import expected_results, needs_flights, stored_results

TIMEOUT_SECS = 300


@pytest.fixture(scope="module")
def cluster(spark: SparkContext) -> Iterator[LocalCluster]:
    with LocalCluster() as cluster:
        yield cluster


def run(cluster: LocalCluster, example: ModuleType) -> int:
    """Run an example as `stormline run` does, until nothing is left; return the last txid committed."""
    config = getattr(example, "config", {})
    handle = cluster.submit_topology(example.__name__, config() if callable(config) else config, example.topology())
    try:
        return handle.await_drained(TIMEOUT_SECS)
    finally:
        handle.kill(TIMEOUT_SECS)


def test_global_count_stores_9_16_and_19(cluster: LocalCluster) -> None:
    assert global_count.report().startswith("This run committed nothing")
    assert run(cluster, global_count) == 3
    assert global_count.STORED == {1: 9, 2: 16, 3: 19}
    assert {global_count.GLOBAL_COUNT_KEY: global_count.Value(19, 3)} == global_count.DATABASE
    assert global_count.report().splitlines() == [
        "Stored count: 19",
        "  after transaction 1: 9",
        "  after transaction 2: 16",
        "  after transaction 3: 19",
    ]


def test_a_count_that_another_process_began_says_so(cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(global_count, "DATABASE", {global_count.GLOBAL_COUNT_KEY: global_count.Value(10, 3)})
    monkeypatch.setattr(global_count, "STORED", {2: 7, 3: 10})
    assert global_count.report().endswith(
        "An earlier run counted what came before transaction 2; its dict ended with it."
    )


def test_words_are_counted_and_all_five_are_in_bucket_0(cluster: LocalCluster) -> None:
    assert words.report().startswith("This run committed nothing")
    assert run(cluster, words) == 3
    counts = {word: value.count for word, value in words.COUNT_DATABASE.items()}
    assert counts == {"cat": 8, "dog": 7, "apple": 2, "chicken": 1, "banana": 1}
    assert words.COUNT_DATABASE["dog"] == words.CountValue(7, 4, 3)
    assert {bucket: value.count for bucket, value in words.BUCKET_DATABASE.items()} == {0: 5}
    assert words.report().splitlines()[0] == "cat       8  (stored by transaction 2)"
    assert words.report().splitlines()[-1] == "Words that occur 0 to 9 times: 5"


def test_the_phases_and_the_order_of_finishing_are_those_of_the_design(cluster: LocalCluster) -> None:
    assert design_phases.report().startswith("This run committed nothing")
    assert run(cluster, design_phases) == 2
    assert design_phases.NOTES[1] == [
        ("A", ["processing"], "processing"),
        ("B", ["processing"], "commit"),
        ("C", ["processing", "commit"], "commit"),
        ("D", ["commit"], "commit"),
    ]
    assert design_phases.NOTES[1] == design_phases.NOTES[2]
    assert design_phases.report().splitlines()[:3] == [
        "transaction 1",
        "  processing phase: A finished; A, B, C executed",
        "  commit phase:     B, then C, then D finished; C, D executed",
    ]


@needs_flights
def test_flight_delays_equal_what_pandas_computes(
    cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = tmp_path / "flights.sqlite"
    monkeypatch.setenv("FLIGHT_DELAYS_STORE", f"sqlite:{database}")
    assert run(cluster, flight_delays) == 34
    assert stored_results(database) == expected_results()
    lines = flight_delays.report().splitlines()
    assert lines[0] == f"336,776 flights, in sqlite:{database}"
    assert lines[3].split() == ["UA", "58,665", "701,898", "12.1"]
    assert lines[-3].split() == ["EWR", "6:00", "11,133"]


@needs_flights
def test_flight_delays_by_columns_equal_what_pandas_computes(
    cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = tmp_path / "flights.sqlite"
    monkeypatch.setenv("FLIGHT_DELAYS_STORE", f"sqlite:{database}")
    assert run(cluster, flight_delays_arrow) == 34
    assert stored_results(database) == expected_results()
    assert flight_delays_arrow.report().splitlines()[3].split() == ["UA", "58,665", "701,898", "12.1"]
