"""MetricTotals: what metrics have counted since the start, in the driver."""

from __future__ import annotations

import threading
import time
from typing import Any

from stormline.topology.readings import Readings, merge_into


class MetricTotals:
    """Adds readings up. Usable from any thread."""

    def __init__(self) -> None:
        self._readings: Readings = {}
        self._lock = threading.Lock()
        self._started = time.monotonic()

    def add(self, readings: Readings) -> None:
        """Add what was counted for one attempt that counts."""
        if readings:
            with self._lock:
                merge_into(self._readings, readings)

    def values(self) -> dict[str, dict[str, Any]]:
        """Return the values of all metrics, by component and name."""
        if not self._readings:
            return {}
        with self._lock:
            readings = sorted(self._readings.items(), key=lambda item: item[0])
        elapsed_secs = time.monotonic() - self._started
        values: dict[str, dict[str, Any]] = {}
        for (component, name), reading in readings:
            values.setdefault(component, {})[name] = reading.value(elapsed_secs)
        return values
