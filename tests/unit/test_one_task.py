"""When a wave runs as one Spark task, and what tells."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from stormline.runtime.spark_engine import one_task_pays
from stormline.runtime.stopwatch import Stopwatch


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


def test_a_stopwatch_counts_work_but_not_waiting_for_input_or_consumer(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    watch = Stopwatch()

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
