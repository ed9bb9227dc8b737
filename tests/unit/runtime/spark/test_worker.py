"""What a Python worker of Spark keeps from task to task."""

from __future__ import annotations

import gc
import pickle
import threading
import weakref
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from stormline import compile_topology
from stormline.runtime.spark import worker
from stormline.runtime.spark.worker import environment
from tests.kits.components import Batch, eventually, line, numbers


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    threshold = gc.get_threshold()
    yield
    gc.set_threshold(*threshold)
    gc.unfreeze()
    while worker._ENVIRONMENTS:
        worker._ENVIRONMENTS.popitem()[1].close()


def payload() -> Any:
    topology = line("t", numbers(6), 5, lambda b: b.set_bolt("x", Batch()).shuffle_grouping("spout"))
    return SimpleNamespace(value=pickle.dumps((compile_topology(topology).for_executors(), 1, {}, None)))


def test_after_a_task_the_collector_looks_at_nothing_that_was_loaded_before() -> None:
    environment("a run", payload())
    assert len(gc.get_objects()) < gc.get_freeze_count() / 10


def test_what_an_earlier_run_has_left_goes_when_others_come() -> None:
    earlier: Any = environment("a run", payload())
    earlier.cycle = earlier
    gone = weakref.ref(earlier)
    del earlier
    environment("the next run", payload())
    eventually(lambda: sum(thread.name == "stormline-t-calls" for thread in threading.enumerate()) == 1)
    assert environment("the last run", payload()) is environment("the last run", payload())
    assert gone() is None
