"""The compiled plan of every example is kept in tests/golden, so that a change of plan shows in review.

After a change that is meant: UPDATE_GOLDEN=1 python -m pytest tests/unit/examples/test_golden_plans.py,
and look at the diff.
"""

import importlib
import os
import pkgutil
from pathlib import Path

import pytest

import examples
from stormline.cli.target import load_target
from stormline.topology.compiler import compile_topology
from stormline.topology.explain import explain
from tests.kits.flights import needs_flights

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
NAMES = [
    module.name
    for module in pkgutil.iter_modules(examples.__path__)
    if hasattr(importlib.import_module(f"examples.{module.name}"), "topology")
]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=needs_flights if name.startswith("flight") else ()) for name in NAMES]
)
def test_the_plan_of_an_example_is_the_one_that_was_reviewed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    target = load_target(f"examples.{name}", from_here=False)
    text = explain(compile_topology(target.topology, target.config))
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text, encoding="utf-8")
    assert golden.is_file(), f"no golden plan of {name}: run with UPDATE_GOLDEN=1, and review it"
    assert text == golden.read_text(encoding="utf-8")


def test_every_golden_plan_is_of_an_example() -> None:
    assert sorted(path.stem for path in GOLDEN.iterdir()) == sorted(NAMES)
