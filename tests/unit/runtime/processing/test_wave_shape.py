"""How a wave is laid out, and what tells."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from stormline import TransactionAttempt, compile_topology
from stormline.runtime.cluster.in_process_engine import InProcessEngine
from stormline.runtime.messages.wave import AttemptResult, Wave, WaveAttempt, WaveResult
from stormline.runtime.processing import stage_runner
from stormline.runtime.processing.wave_shape import WaveShaper, commit_only_stages, one_task_pays
from stormline.runtime.tasks.task_environment import TaskEnvironment
from stormline.runtime.world.stopwatch import Stopwatch
from stormline.runtime.world.world import REAL
from stormline.topology.plan import Plan
from tests.kits.components import Batch, Store, line, numbers

A = TransactionAttempt(1, 1)


@pytest.mark.parametrize(
    ("busy_secs", "stages", "slots", "pays"),
    [
        (0.05, 3, 2, True),
        (0.05, 1, 2, False),
        (0.01, 1, 2, True),
        (1.0, 3, 2, False),
        (0.2, 3, 64, True),
        (10.0, 3, 64, False),
        (10.0, 3, 1, True),
    ],
)
def test_one_task_pays_where_work_side_by_side_would_save_less_than_stages_cost(
    busy_secs: float, stages: int, slots: int, pays: bool
) -> None:
    assert one_task_pays(busy_secs, stages, slots) is pays


def test_a_stopwatch_counts_work_but_not_waiting_for_input_or_consumer() -> None:
    now = [0.0]
    watch = Stopwatch(replace(REAL, monotonic=lambda: now[0]))

    def source() -> Iterator[int]:
        for n in range(3):
            now[0] += 100.0
            yield n

    def work(incoming: Iterator[int]) -> Iterator[float]:
        now[0] += 1.0
        for _ in incoming:
            now[0] += 2.0
            yield 0.0
        now[0] += 4.0
        yield watch.secs()

    last = 0.0
    for given in watch.outside(work(watch.inside(source()))):
        now[0] += 1000.0
        last = given
    assert last == 1.0 + 3 * 2.0 + 4.0


# ---------------------------------------------------------------------------------------- left out until the commit


def plan(**config: Any) -> Plan:
    declared = line(
        "t",
        numbers(6000, 3),
        1000,
        lambda b: b.set_bolt("x", Batch(), 3).shuffle_grouping("spout"),
        lambda b: b.set_bolt("store", Store("t"), 2).fields_grouping("x", ["value"]),
        parallelism=3,
    )
    return compile_topology(declared, config)


def result(attempts: int, rows_of: dict[int, int], busy_secs_of: dict[int, float]) -> WaveResult:
    ids = [TransactionAttempt(txid, 1) for txid in range(1, attempts + 1)]
    wave = Wave(1, tuple(WaveAttempt(attempt, 1) for attempt in ids))
    return WaveResult(wave, [AttemptResult(attempt) for attempt in ids], rows_of=rows_of, busy_secs_of=busy_secs_of)


BUSY = {1: 9.0, 2: 0.01}


def test_a_stage_of_committers_is_left_out_where_it_gets_few_tuples_and_comes_back_where_they_are_many() -> None:
    shaper = WaveShaper(plan())
    assert commit_only_stages(plan()) == {2}
    assert shaper.layout(10, 2).slots == (1, 2, 2), "the first wave tells"
    for rows, slots in ((2561, 2), (2560, 0), (10_240, 0), (10_250, 2), (2570, 2), (0, 0)):
        shaper.learn(result(10, {1: 9, 2: rows}, BUSY if slots or rows <= 2560 else {1: 9.0}))
        assert shaper.layout(10, 2).slots == (1, 2, slots), rows


def test_a_stage_of_committers_that_works_long_on_few_tuples_stays() -> None:
    shaper = WaveShaper(plan())
    shaper.learn(result(10, {2: 10}, {1: 9.0, 2: 0.021}))
    assert shaper.layout(10, 2).slots == (1, 2, 2)
    shaper.learn(result(10, {}, {1: 9.0}))
    assert shaper.layout(10, 2).slots == (1, 2, 2), "its reports are missing"


def test_a_wave_that_works_little_is_one_task() -> None:
    shaper = WaveShaper(plan())
    shaper.learn(result(10, {2: 10}, {1: 0.005, 2: 0.005}))
    assert shaper.layout(10, 2).components == (("spout",), ("x", "store"), ())
    assert shaper.layout(10, 2).slots == (1, 1, 0)
    shaper.learn(result(10, {}, {1: 0.01}))
    assert shaper.layout(10_000, 2).slots == (1, 2, 0), "what was left out before it is left out again"


def test_a_spout_on_the_driver_may_leave_nothing_for_spark() -> None:
    declared = line("t", {0: [1]}, 1, lambda b: b.set_bolt("store", Store("t")).global_grouping("spout"))
    shaper = WaveShaper(compile_topology(declared))
    shaper.learn(result(1, {1: 1}, {0: 0.001, 1: 0.001}))
    assert shaper.layout(1, 2).slots == (1, 0)


def test_an_attempt_that_keeps_too_much_for_the_commit_is_processed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_runner, "KEPT_ROWS_MAX", 999)
    env = TaskEnvironment(plan(), 1)
    wave = result(1, {}, {}).wave
    given = InProcessEngine(env, 2, at_commit=True).process(dataclasses.replace(wave, attempts=(WaveAttempt(A, 3),)))
    (attempt,) = given.attempts
    assert attempt.failure is not None
    assert "more than 999 tuples to be executed at the commit" in attempt.failure.message
    assert not attempt.failure.counts
    assert given.rows_of[2] > 999
    assert given.overfull == {2}


def test_a_stage_comes_back_for_one_attempt_that_is_too_large_though_all_others_of_the_wave_are_small() -> None:
    shaper = WaveShaper(plan())
    shaper.learn(result(100, {2: 100}, BUSY))
    assert shaper.layout(100, 2).slots == (1, 2, 0)
    large = result(100, {2: 65_800}, {1: 9.0})
    large.overfull = {2}
    shaper.learn(large)
    assert shaper.layout(100, 2).slots == (1, 2, 2)
