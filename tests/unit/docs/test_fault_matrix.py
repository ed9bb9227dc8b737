"""The fault matrix names what there is, and leaves no kind of fault out."""

from __future__ import annotations

import importlib
import json
import platform
from collections import Counter
from pathlib import Path

import pytest

from docs import fault_page
from tests.chaos import deaths
from tests.chaos.schedule import DRIVER_KILL, DRIVER_STOP, KINDS, PYTHON_WORKER_KILL, PYTHON_WORKER_STOP
from tests.fault_matrix import MATRIX, recorded
from tests.fault_matrix.row import Open, Row
from tests.simulation.faults import WEIGHTS

ROWS = [row for rows in MATRIX.values() for row in rows]

KILLS_AT_COMMIT = (DRIVER_KILL, DRIVER_STOP, PYTHON_WORKER_KILL, PYTHON_WORKER_STOP)
CHAOS = {
    kind.name: {*kind.variants, *(f"at {p}" for p in deaths.AT_COMMIT if kind.name in KILLS_AT_COMMIT)}
    for kind in KINDS
}


def names(side: str) -> list[str]:
    """Return what all rows name as their simulated or real cover."""
    covers = [getattr(row, side) for row in ROWS]
    return [name for cover in covers if not isinstance(cover, Open) for name in cover]


def missing(test: str) -> str:
    """Return what does not exist of a test's node id; empty where it does."""
    path, *parts = test.split("::")
    if not Path(recorded.ROOT, path).is_file():
        return path
    found: object = importlib.import_module(path.removesuffix(".py").replace("/", "."))
    for part in parts:
        if not hasattr(found, part) or not part.startswith(("test_", "Test")):
            return part
        found = getattr(found, part)
    return ""


def test_there_are_fifty_rows_and_more_each_with_a_key_of_its_own_and_a_reason_where_it_is_open() -> None:
    assert len(ROWS) >= 50
    assert [key for key, count in Counter(row.key for row in ROWS).items() if count > 1] == []
    for row in ROWS:
        assert row.fault, row.key
        assert row.must, row.key
        for cover in (row.simulated, row.real):
            assert cover.why if isinstance(cover, Open) else cover, row.key


def test_every_test_that_is_named_exists_and_is_on_its_side() -> None:
    simulated = [name for name in names("simulated") if "::" in name]
    real = [name for name in names("real") if "::" in name]
    assert [name for name in [*simulated, *real] if missing(name)] == []
    assert [
        name for name in simulated if not name.startswith(("tests/unit/", "tests/model/", "tests/simulation/"))
    ] == []
    sides = ("tests/spark/", "tests/cluster/", "tests/kafka/", "tests/starrocks/")
    assert [name for name in real if not name.startswith(sides)] == []


def test_a_test_that_does_not_exist_is_noticed() -> None:
    here = "tests/unit/docs/test_fault_matrix.py"
    assert missing(f"{here}::test_a_test_that_does_not_exist_is_noticed") == ""
    assert missing(f"{here}::test_gone") == "test_gone"
    assert missing(f"{here}::names") == "names"
    assert missing("tests/unit/gone.py::test_gone") == "tests/unit/gone.py"


def test_kinds_of_faults_are_the_simulators_and_the_chaos_runs_and_none_is_left_out() -> None:
    simulated = {name for name in names("simulated") if "::" not in name}
    assert simulated == set(WEIGHTS)
    real = [name.partition(": ") for name in names("real") if "::" not in name]
    assert [name for name, _, variant in real if name not in CHAOS or (variant and variant not in CHAOS[name])] == []
    assert {name for name, _, _ in real} == set(CHAOS)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(fault_page, "RUNS", tmp_path / "run.json")
    return tmp_path / "run.json"


def seeds(first: int, count: int) -> dict[str, int]:
    return {"first seed": first, "seeds": count, "secs": 2, "violations": 0}


def test_a_run_is_recorded_beside_the_other_and_in_place_of_the_one_before(run: Path) -> None:
    recorded.record(run, "chaos", {"seed": 7, "violations": 0}, Counter({"driver-kill: driver": 2, "driver-rival": 1}))
    recorded.record(run, "simulation", seeds(0, 10), Counter({"slow": 5}))
    recorded.record(run, "chaos", {"seed": 8, "violations": 0}, Counter({"driver-kill: driver": 3}))
    runs = json.loads(run.read_text(encoding="utf-8"))
    assert (runs["chaos"]["seed"], runs["chaos"]["faults"]) == (8, {"driver-kill: driver": 3})
    assert (runs["simulation"]["seeds"], runs["simulation"]["faults"]) == (10, {"slow": 5})
    assert runs["chaos"]["date"]
    assert runs["chaos"]["commit"]
    assert "- chaos, 20" in fault_page.page()


def test_seeds_that_go_on_where_the_last_ones_ended_are_added_to_them(run: Path) -> None:
    recorded.record(run, "simulation", seeds(0, 10), Counter({"slow": 5}))
    recorded.record(run, "simulation", seeds(10, 20), Counter({"slow": 1, "task: late": 2}))
    stored = json.loads(run.read_text(encoding="utf-8"))["simulation"]
    assert [stored[key] for key in ("first seed", "seeds", "secs", "violations")] == [0, 30, 4, 0]
    assert stored["faults"] == {"slow": 6, "task: late": 2}
    assert ": first seed 0, 30 seeds, 0 violations, 8 seeds/s on Python 3." in fault_page.page()


@pytest.mark.parametrize(
    ("first", "commit", "python"), [(11, "a", "3.11.7"), (0, "a", "3.11.7"), (10, "b", "3.11.7"), (10, "a", "3.13.0")]
)
def test_seeds_that_do_not_go_on_are_a_run_of_their_own(
    run: Path, monkeypatch: pytest.MonkeyPatch, first: int, commit: str, python: str
) -> None:
    def record(first: int, count: int, commit: str, python: str) -> None:
        monkeypatch.setattr(recorded, "_commit", lambda written: commit)
        monkeypatch.setattr(platform, "python_version", lambda: python)
        recorded.record(run, "simulation", seeds(first, count), Counter({"slow": count}))

    record(0, 10, "a", "3.11.7")
    record(first, 20, commit, python)
    stored = json.loads(run.read_text(encoding="utf-8"))["simulation"]
    assert (stored["first seed"], stored["seeds"], stored["faults"]) == (first, 20, {"slow": 20})


def test_the_page_says_how_often_and_what_is_open(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = (
        Row("a", "x dies", "y", ("slow",), ("driver-kill", "tests/cluster/test_chaos.py::test_z")),
        Row("b", "x sleeps", "y", Open("no reason"), ("driver-kill: driver",)),
        Row("c", "x errs", "y", Open("none"), Open("none either")),
    )
    monkeypatch.setattr(fault_page, "MATRIX", {"X": rows})
    faults = {"driver-kill: driver": 2, "driver-kill: at before-commit": 3, "driver-killer": 9}
    recorded.record(run, "chaos", {"seed": 7}, Counter(faults))
    page = fault_page.page()
    assert "3 rows: 1 are covered by a simulated test, 2 by a real one, 1 by both; 1 are open on both sides." in page
    test = "[test_z](../tests/cluster/test_chaos.py)"
    assert f"| x dies | y | `slow` | `driver-kill`<br>{test} | chaos 5<br>1 test a run |" in page
    assert "| x sleeps | y | **open**: no reason | `driver-kill: driver` | chaos 2 |" in page
    assert "| x errs | y | **open**: none | **open**: none either | never |" in page
