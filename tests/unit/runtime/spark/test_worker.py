"""What a Python worker keeps from task to task is no burden to the garbage collector."""

from __future__ import annotations

import gc
import pickle
from types import SimpleNamespace

import pytest

from stormline import compile_topology
from stormline.runtime.spark import worker
from tests.kits.components import Store, line, numbers


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_ENVIRONMENTS", {})
    monkeypatch.setattr(worker, "_frozen", False)
    monkeypatch.setattr(gc, "set_threshold", lambda threshold: None)


def test_what_the_first_task_has_left_is_looked_through_no_more_and_what_later_topologies_leave_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frozen: list[str] = []
    done: list[str] = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(done[-1]))
    topology = line("t", numbers(6, 3), 5, lambda b: b.set_bolt("store", Store("t")).global_grouping("spout"))
    payload = SimpleNamespace(value=pickle.dumps((compile_topology(topology), 1, {}, None)))
    for run in ["t/1", "t/1", "t/1", "t/2", "t/2"]:
        worker.environment(run, payload)  # type: ignore[arg-type]
        done.append(run)
    assert frozen == ["t/1"]
    assert list(worker._ENVIRONMENTS) == ["t/2"]
