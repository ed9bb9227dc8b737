"""A wave leaves nothing that only the collector of cycles would free: it took a tenth of what small batches took."""

from __future__ import annotations

import gc
import weakref

import pytest

from stormline import TransactionAttempt, compile_topology
from stormline.runtime.cluster import in_process_engine
from stormline.runtime.cluster.in_process_engine import InProcessEngine
from stormline.runtime.messages.wave import Wave, WaveAttempt
from stormline.runtime.processing.stage_runner import StageRunner
from stormline.runtime.tasks.task_environment import TaskEnvironment
from tests.kits.components import Batch, Store, line, numbers


def test_what_served_a_wave_is_freed_as_soon_as_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    runners: list[weakref.ref[StageRunner]] = []

    def made(*args: object) -> StageRunner:
        runner = StageRunner(*args)  # type: ignore[arg-type]
        runners.append(weakref.ref(runner))
        return runner

    monkeypatch.setattr(in_process_engine, "StageRunner", made)
    topology = line(
        "t",
        numbers(60, 3),
        5,
        lambda b: b.set_bolt("x", Batch(), 3).shuffle_grouping("spout"),
        lambda b: b.set_bolt("store", Store("t"), 2).fields_grouping("x", ["value"]),
        parallelism=3,
    )
    engine = InProcessEngine(TaskEnvironment(compile_topology(topology), 1))
    gc.disable()
    try:
        result = engine.process(Wave(1, tuple(WaveAttempt(TransactionAttempt(txid, 1), 3) for txid in (1, 2))))
        assert [attempt.failure for attempt in result.attempts] == [None, None]
        assert len(runners) >= 2
        assert [ref() for ref in runners] == [None] * len(runners)
    finally:
        gc.enable()
