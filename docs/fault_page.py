"""docs/faults.md: the fault matrix, and how often each row was tried in the runs that docs/faults_run.json holds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.fault_matrix import MATRIX
from tests.fault_matrix.row import Covered, Open, Row

RUNS = Path(__file__).with_name("faults_run.json")


def times(kinds: Iterable[str], faults: Mapping[str, int]) -> int:
    """Return how often these kinds came, of all variants where they name none."""
    wanted = set(kinds)
    return sum(count for name, count in faults.items() if wanted & {name, name.partition(": ")[0]})


def page() -> str:
    """Return the page."""
    runs = json.loads(RUNS.read_text(encoding="utf-8"))
    rows = [row for area in MATRIX.values() for row in area]
    lines = [
        "# Faults",
        "",
        "Every way to fail that we know of: what must happen, which simulated and which real test covers it, and how",
        "often it was tried. *Simulated* runs in one process, on doubles of Spark, ZooKeeper and databases; *real*",
        "breaks real processes. A kind of fault is written `like this`: of the simulator (`make simulate`) or of the",
        "chaos runs (`make chaos`); a test is a link, run by `make test` or `make proof`. What nothing covers is",
        "**open**, with the reason. The rows are in [tests/fault_matrix](../tests/fault_matrix/__init__.py); a test",
        "sees that all that they name exists, and that no kind of fault lacks a row.",
        "",
        _counts(rows),
        "",
        'Recorded by `make simulate ARGS="--record docs/faults_run.json"`, and the same of `make chaos`; then',
        "`make docs`.",
        "",
        *(f"- {_run(name, run)}" for name, run in sorted(runs.items())),
    ]
    for area, rows_of_area in MATRIX.items():
        lines += ["", f"## {area}", ""]
        lines += ["| what happens | what must come of it | simulated | real | how often |", "|---|---|---|---|---|"]
        lines += [_line(row, runs) for row in rows_of_area]
    return "\n".join(lines) + "\n"


def _counts(rows: list[Row]) -> str:
    simulated = sum(not isinstance(row.simulated, Open) for row in rows)
    real = sum(not isinstance(row.real, Open) for row in rows)
    both = sum(not isinstance(row.simulated, Open) and not isinstance(row.real, Open) for row in rows)
    neither = len(rows) - simulated - real + both
    return (
        f"{len(rows)} rows: {simulated} are covered by a simulated test, {real} by a real one, {both} by both; "
        f"{neither} are open on both sides."
    )


def _run(name: str, run: Mapping[str, Any]) -> str:
    told = [f"{key} {run[key]}" for key in ("seed", "first seed") if key in run]
    told += [f"{run[key]:,} {key}" for key in ("seeds", "tuples", "violations") if key in run]
    if "seeds" in run:
        told += [f"{run['seeds'] / max(run['secs'], 1):.0f} seeds/s on Python {run['python']}"]
    return (
        f"{name}, {run['date']}, at commit {run['commit']}: {', '.join(told)}; {sum(run['faults'].values()):,} faults"
    )


def _line(row: Row, runs: Mapping[str, Any]) -> str:
    cells = [row.fault, row.must, _covered(row.simulated), _covered(row.real), _often(row, runs)]
    return f"| {' | '.join(cells)} |"


def _covered(covered: Covered | Open) -> str:
    return f"**open**: {covered.why}" if isinstance(covered, Open) else "<br>".join(map(_reference, covered))


def _reference(name: str) -> str:
    path, _, test = name.partition("::")
    return f"[{test.rpartition('::')[2]}](../{path})" if test else f"`{name}`"


def _often(row: Row, runs: Mapping[str, Any]) -> str:
    told = []
    for covered, part in ((row.simulated, "simulation"), (row.real, "chaos")):
        kinds = _kinds(covered)
        if kinds and part in runs:
            told.append(f"{part} {times(kinds, runs[part]['faults']):,}")
    tests = {name for covered in (row.simulated, row.real) for name in _tests(covered)}
    if tests:
        told.append(f"{len(tests)} test{'s' * (len(tests) > 1)} a run")
    return "<br>".join(told) or "never"


def _kinds(covered: Covered | Open) -> set[str]:
    return set() if isinstance(covered, Open) else {name for name in covered if "::" not in name}


def _tests(covered: Covered | Open) -> Iterable[str]:
    return () if isinstance(covered, Open) else (name for name in covered if "::" in name)
