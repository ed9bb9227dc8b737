"""TaskMetrics: what a task has registered to count, and how it is taken from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import cloudpickle

from stormline.runtime.errors import InvalidMetric
from stormline.topology.metrics import IMetric, Metric
from stormline.topology.readings import Folded, Latest, Reading, Readings

M = TypeVar("M", bound=Metric)


class TaskMetrics:
    """The metrics of one context, by name: of a BatchBolt for one attempt, of all else for as long as it lives."""

    def __init__(self, component: str) -> None:
        self._component = component
        self._metrics: dict[str, Metric] = {}

    def metric(self, name: str, kind: type[M], make: Callable[[], M]) -> M:
        """Return the metric of this name and kind, made at the first time."""
        self._check(name)
        metric = self._metrics.get(name)
        if metric is None:
            metric = self._metrics[name] = make()
        if type(metric) is not kind:
            raise self._taken_already(name, metric, kind)
        return metric

    def add(self, name: str, metric: Any) -> None:
        """Add a metric that user code has made."""
        self._check(name)
        if not isinstance(metric, IMetric):
            raise InvalidMetric(
                f"component {self._component!r} registers {metric!r} as metric {name!r}, expected an object of a kind "
                "of IMetric, such as CountMetric()"
            )
        if self._metrics.setdefault(name, metric) is not metric:
            raise self._taken_already(name, self._metrics[name], type(metric))

    def _check(self, name: Any) -> None:
        if not isinstance(name, str) or not name:
            raise InvalidMetric(
                f"component {self._component!r} registers a metric by {name!r}, expected a name as text"
            )

    def _taken_already(self, name: str, metric: Metric, kind: type) -> InvalidMetric:
        return InvalidMetric(
            f"component {self._component!r} registers metric {name!r} as a {kind.__name__}, and has a "
            f"{type(metric).__name__} of that name; give each its own"
        )

    def taken(self) -> Readings:
        """Return what was counted since the last call."""
        taken = {name: metric.taken() for name, metric in list(self._metrics.items())}
        return {(self._component, n): self._checked(n, reading) for n, reading in taken.items() if reading is not None}

    def _checked(self, name: str, reading: Reading) -> Reading:
        """Check that what user code gave can travel to the driver: there it would take a whole job with it."""
        if isinstance(reading, (Latest, Folded)):
            try:
                cloudpickle.dumps(reading)
            except Exception as error:
                raise InvalidMetric(
                    f"component {self._component!r}: the value of metric {name!r} cannot be sent to the driver "
                    f"({error}); make it of plain data"
                ) from None
        return reading
