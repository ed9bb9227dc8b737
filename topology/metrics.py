"""Metrics of user code, by Storm's names: what counts within a task, and is taken from it call by call."""

from __future__ import annotations

import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Any

from stormline.topology.readings import Distribution, Folded, Latest, Rate, Reading, Total, Totals
from stormline.topology.storm_names import StormInterface, storm_names

_LOCK = threading.Lock()
"""One for all metrics: a bolt may count in threads of its own, and a lock in each could not be shipped."""


class Metric(ABC):
    """What `register_counter` and its like return, and what `register_metric` takes."""

    @abstractmethod
    def taken(self) -> Reading | None:
        """Return what was counted since the last call, and begin anew; None where nothing was. Called by the engine."""


# ---------------------------------------------------------------------------------------- by register_<kind>


class Counter(Metric):
    """Counts up and down. `context.register_counter` returns one."""

    def __init__(self) -> None:
        self._count = 0

    def inc(self, by: int = 1) -> None:
        """Count up.

        Args:
            by (int): number to add.
        """
        with _LOCK:
            self._count += by

    def dec(self, by: int = 1) -> None:
        """Count down.

        Args:
            by (int): number to take away.
        """
        self.inc(-by)

    def taken(self) -> Reading | None:
        """Return the count."""
        with _LOCK:
            count, self._count = self._count, 0
        return Total(count) if count else None


class Meter(Metric):
    """Counts, and gives the mean rate a second since the topology was started. `context.register_meter` returns one."""

    def __init__(self) -> None:
        self._counter = Counter()

    def mark(self, events: int = 1) -> None:
        """Count events.

        Args:
            events (int): number of events.
        """
        self._counter.inc(events)

    def taken(self) -> Reading | None:
        """Return the count."""
        total = self._counter.taken()
        return None if total is None else Rate(total.value(0.0))


class Histogram(Metric):
    """Shows how values are spread: count, mean, min, max and percentiles that are right to 1 %.

    `context.register_histogram` returns one.
    """

    def __init__(self) -> None:
        self._values: list[float] = []

    def update(self, value: float) -> None:
        """Take a number into account, unless it is infinite or not a number.

        Args:
            value (float): the number, in whatever unit; of a timer, in seconds.
        """
        if math.isfinite(value):
            self._values.append(value)

    def taken(self) -> Reading | None:
        """Return the distribution."""
        with _LOCK:
            values, self._values = self._values, []
        return Distribution.of(values) if values else None


class Timer(Histogram):
    """A histogram of seconds: `with timer.time(): …`. `context.register_timer` returns one."""

    def time(self) -> Timing:
        """Return a measurement that begins now; the end of a `with` block, or its `stop()`, ends it."""
        return Timing(self)


class Timing:
    """A measurement that runs."""

    def __init__(self, timer: Timer) -> None:
        self._timer = timer
        self._begun = time.perf_counter()

    def stop(self) -> float:
        """End it; return the seconds it took."""
        secs = time.perf_counter() - self._begun
        self._timer.update(secs)
        return secs

    def __enter__(self) -> Timing:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()


class Gauge(Metric):
    """Asks a function for its value, at the end of each attempt's work in the task; the last value wins.

    `context.register_gauge` returns one.

    Args:
        value_of (Callable[[], Any]): called without arguments; returns the value.
    """

    def __init__(self, value_of: Callable[[], Any]) -> None:
        self.value_of = value_of

    def taken(self) -> Reading | None:
        """Return what the function says now."""
        return Latest(self.value_of())


# ---------------------------------------------------------------------------------------- by register_metric


class IMetric(Metric, StormInterface):
    """Storm's own kind of metric, for `context.register_metric`. Of one of yours, the value last got is shown.

    Storm 1.2.4: IMetric.
    """

    @abstractmethod
    def get_value_and_reset(self) -> Any:
        """Return the value, and begin anew; None where there is none."""

    def taken(self) -> Reading | None:
        """Return the value."""
        value = self.get_value_and_reset()
        return None if value is None else Latest(value)


@storm_names()
class CountMetric(IMetric):
    """Counts. Storm 1.2.4: CountMetric."""

    def __init__(self) -> None:
        self._counter = Counter()

    def incr(self) -> None:
        """Count one."""
        self._counter.inc()

    def incr_by(self, by: int) -> None:
        """Count several.

        Args:
            by (int): number to add.
        """
        self._counter.inc(by)

    def get_value_and_reset(self) -> int:
        """Return the count, and begin anew at 0."""
        total = self._counter.taken()
        return 0 if total is None else total.value(0.0)

    def taken(self) -> Reading | None:
        """Return the count."""
        return self._counter.taken()


@storm_names()
class MultiCountMetric(IMetric):
    """A `CountMetric` for each key. Storm 1.2.4: MultiCountMetric."""

    def __init__(self) -> None:
        self._scopes: dict[str, CountMetric] = {}

    def scope(self, key: str) -> CountMetric:
        """Return the metric of a key, made if it was not there.

        Args:
            key (str): under which its count is shown.
        """
        return self._scopes.setdefault(key, CountMetric())

    def get_value_and_reset(self) -> dict[str, int]:
        """Return all counts by key, and begin anew."""
        return {key: metric.get_value_and_reset() for key, metric in list(self._scopes.items())}

    def taken(self) -> Reading | None:
        """Return the counts."""
        counts = {key: count for key, count in self.get_value_and_reset().items() if count}
        return Totals(counts) if counts else None


@storm_names()
class AssignableMetric(IMetric):
    """Holds a value that is set; the last one wins. Storm 1.2.4: AssignableMetric.

    Args:
        initial (Any): the value until one is set.
    """

    def __init__(self, initial: Any = None) -> None:
        self._value = initial

    def set_value(self, value: Any) -> None:
        """Set the value.

        Args:
            value (Any): any value that can be sent to the driver.
        """
        self._value = value

    def get_value_and_reset(self) -> Any:
        """Return the value, which stays."""
        return self._value


class IReducer(StormInterface):
    """Folds values into one. What tasks and attempts have folded is put together by `merge`.

    Storm 1.2.4: IReducer, which has no `merge`.
    """

    @abstractmethod
    def init(self) -> Any:
        """Return the accumulator to begin with."""

    @abstractmethod
    def reduce(self, accumulator: Any, value: Any) -> Any:
        """Return the accumulator with one more value in it.

        Args:
            accumulator (Any): what `init` or `reduce` returned.
            value (Any): what `ReducedMetric.update` was given.
        """

    @abstractmethod
    def extract_result(self, accumulator: Any) -> Any:
        """Return what is shown.

        Args:
            accumulator (Any): what `init`, `reduce` or `merge` returned.
        """

    def merge(self, earlier: Any, later: Any) -> Any:
        """Return what two accumulators have folded; unless overridden, the later one alone.

        Args:
            earlier (Any): what was folded first.
            later (Any): what was folded then.
        """
        return later


class MeanReducer(IReducer):
    """The mean of all values. Storm 1.2.4: MeanReducer."""

    def init(self) -> Any:
        """Return (number of values, their sum): nothing."""
        return (0, 0.0)

    def reduce(self, accumulator: Any, value: Any) -> Any:
        """Return both with one more value."""
        count, total = accumulator
        return count + 1, total + value

    def extract_result(self, accumulator: Any) -> Any:
        """Return the mean; None of no values."""
        count, total = accumulator
        return total / count if count else None

    def merge(self, earlier: Any, later: Any) -> Any:
        """Return the sums of both."""
        return earlier[0] + later[0], earlier[1] + later[1]


@storm_names()
class ReducedMetric(IMetric):
    """Folds what it is given by a reducer. Storm 1.2.4: ReducedMetric.

    Args:
        reducer (IReducer): how to fold.
    """

    def __init__(self, reducer: IReducer) -> None:
        self._reducer = reducer
        self._accumulator = reducer.init()
        self._updated = False

    def update(self, value: Any) -> None:
        """Fold a value in.

        Args:
            value (Any): what the reducer takes.
        """
        with _LOCK:
            self._accumulator, self._updated = self._reducer.reduce(self._accumulator, value), True

    def get_value_and_reset(self) -> Any:
        """Return the result, and begin anew."""
        with _LOCK:
            accumulator, self._accumulator, self._updated = self._accumulator, self._reducer.init(), False
        return self._reducer.extract_result(accumulator)

    def taken(self) -> Reading | None:
        """Return what was folded."""
        with _LOCK:
            if not self._updated:
                return None
            accumulator, self._accumulator, self._updated = self._accumulator, self._reducer.init(), False
        return Folded(self._reducer, accumulator)
