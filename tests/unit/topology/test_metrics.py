"""Metrics by themselves: what they count, how readings are put together, and what they look like."""

from __future__ import annotations

import copy
import pickle
import threading
from typing import Any

import pytest

from stormline import (
    AssignableMetric,
    Counter,
    CountMetric,
    Gauge,
    Histogram,
    IMetric,
    IReducer,
    MeanReducer,
    Meter,
    MultiCountMetric,
    ReducedMetric,
    Timer,
)
from stormline.runtime.coordination.progress import MetricTotals
from stormline.runtime.world.world import REAL
from stormline.topology.readings import Distribution, Latest, Readings, Total, merge_into


def value(metric: Any, elapsed_secs: float = 10.0) -> Any:
    reading = metric.taken()
    return None if reading is None else reading.value(elapsed_secs)


def test_what_was_taken_is_not_taken_again() -> None:
    counter, meter, many = Counter(), Meter(), MultiCountMetric()
    assert [value(counter), value(meter), value(many)] == [None, None, None]
    counter.inc()
    counter.inc(5)
    counter.dec(2)
    meter.mark()
    meter.mark(19)
    many.scope("a").incr_by(3)
    many.scope("a").incr()
    many.scope("b")
    assert value(counter) == 4
    assert value(meter) == {"count": 20, "mean_rate": 2.0}
    assert value(many) == {"a": 4}
    assert [value(counter), value(meter), value(many)] == [None, None, None]


def test_storms_own_metrics_give_their_values_as_in_storm() -> None:
    count, many, mean, assigned = CountMetric(), MultiCountMetric(), ReducedMetric(MeanReducer()), AssignableMetric(1)
    count.incr()
    many.scope("a").incr()
    mean.update(1)
    mean.update(2)
    assert [metric.get_value_and_reset() for metric in (count, many, mean, assigned)] == [1, {"a": 1}, 1.5, 1]
    assert [metric.get_value_and_reset() for metric in (count, many, mean, assigned)] == [0, {"a": 0}, None, 1]
    assert mean.taken() is None
    assigned.set_value(2)
    assert [value(assigned), value(assigned)] == [2, 2]


def test_a_gauge_asks_when_it_is_taken() -> None:
    values = [1, 2]
    gauge = Gauge(lambda: values.pop(0))
    assert [value(gauge), value(gauge)] == [1, 2]


class Doubled(IMetric):
    def __init__(self, of: Any) -> None:
        self.of = of

    def get_value_and_reset(self) -> Any:
        return None if self.of is None else 2 * self.of


def test_of_a_users_own_metric_the_last_value_is_shown() -> None:
    assert [value(Doubled(3)), value(Doubled(None))] == [6, None]


class Longest(IReducer):
    def init(self) -> str:
        return ""

    def reduce(self, accumulator: str, value: str) -> str:
        return max(accumulator, value, key=len)

    def extract_result(self, accumulator: str) -> str:
        return accumulator


def test_a_reducer_without_a_way_to_merge_shows_the_later_result() -> None:
    first, second = ReducedMetric(Longest()), ReducedMetric(Longest())
    first.update("longer")
    second.update("new")
    readings: Readings = {}
    for metric in (first, second):
        reading = metric.taken()
        assert reading is not None
        merge_into(readings, {("bolt", "longest"): reading})
    assert readings["bolt", "longest"].value(1.0) == "new"


@pytest.mark.parametrize("parts", [[range(1, 1001)], [range(1, 400), range(400, 1001)], [[n] for n in range(1, 1001)]])
def test_a_histogram_is_the_same_however_it_was_put_together(parts: list[Any]) -> None:
    readings: Readings = {}
    for part in parts:
        histogram = Histogram()
        for number in part:
            histogram.update(number)
        reading = histogram.taken()
        assert reading is not None
        merge_into(readings, {("bolt", "sizes"): reading})
    shown = readings["bolt", "sizes"].value(1.0)
    assert (shown["count"], shown["mean"], shown["min"], shown["max"]) == (1000, 500.5, 1.0, 1000.0)
    assert [shown["p50"], shown["p95"], shown["p99"]] == pytest.approx([500, 950, 990], rel=0.0101)


@pytest.mark.parametrize(
    "number", [0, 1, -1, 5e-324, -5e-324, 1.7976931348623157e308, -1.7976931348623157e308, 123.456]
)
def test_a_histogram_holds_any_finite_number(number: float) -> None:
    histogram = Histogram()
    for one in (number, float("nan"), float("inf"), -float("inf")):
        histogram.update(one)
    shown = value(histogram)
    assert set(shown.values()) == {1, number}


def test_percentiles_are_in_order_across_zero() -> None:
    shown = Distribution.of([-100.0] * 50 + [0.0] * 45 + [7.0] * 5).value(1.0)
    assert shown["p50"] == pytest.approx(-100, rel=0.01)
    assert shown["p95"] == 0.0
    assert shown["p99"] == pytest.approx(7, rel=0.01)


def test_a_timer_is_a_histogram_of_seconds() -> None:
    timer = Timer()
    with timer.time():
        pass
    assert timer.time().stop() >= 0
    shown = value(timer)
    assert shown["count"] == 2
    assert 0 <= shown["min"] <= shown["p50"] <= shown["max"]


def test_counting_from_many_threads_loses_nothing() -> None:
    counter = Counter()

    def count() -> None:
        for _ in range(10_000):
            counter.inc()

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert value(counter) == 40_000


def test_a_metric_of_a_declared_bolt_can_be_shipped_and_copied() -> None:
    metric = MultiCountMetric()
    metric.scope("a").incr()
    assert value(pickle.loads(pickle.dumps(metric))) == value(copy.deepcopy(metric)) == {"a": 1}


def test_a_name_that_becomes_another_kind_of_metric_shows_the_later_one() -> None:
    readings: Readings = {("bolt", "x"): Total(1)}
    merge_into(readings, {("bolt", "x"): Latest("now"), ("bolt", "y"): Total(2)})
    assert {key: reading.value(1.0) for key, reading in readings.items()} == {("bolt", "x"): "now", ("bolt", "y"): 2}


def test_totals_are_by_component_and_name_in_order() -> None:
    totals = MetricTotals(REAL)
    assert totals.values() == {}
    totals.add({("b", "x"): Total(1), ("a", "z"): Total(2)})
    totals.add({("b", "x"): Total(10), ("a", "y"): Total(3)})
    assert list(totals.values().items()) == [("a", {"y": 3, "z": 2}), ("b", {"x": 11})]
