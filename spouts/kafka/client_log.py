"""What Kafka's client library tells: its errors, and lines for the logger `stormline.kafka`.

A broker that is away is tried by each client of each process once and again, and each try is a line: within minutes
they are most of a log. So of lines that differ in nothing but the client and the time spent, one passes each half
minute, and says how many it stands for.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

QUIET_SECS = 30.0
"""How long a line keeps lines like it back."""
KINDS_MAX = 1000
"""So many kinds of lines are known; with more, all begin anew."""

_VARIES = re.compile(r"\(after \d+ms in state .*|\b\d+ms\b")
"""What a try says of itself: how long it took, and how many the library itself has kept back."""


class FewRepeats(logging.Filter):
    """Lets one of the lines pass that say the same within half a minute, with the number of those it stands for."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._lock = threading.Lock()
        self._last: dict[tuple[object, ...], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a line passes."""
        kind = self._kind(record)
        now = self._clock()
        with self._lock:
            passed, kept_back = self._last.get(kind, (None, 0))
            if passed is not None and now - passed < QUIET_SECS:
                self._last[kind] = (passed, kept_back + 1)
                return False
            if len(self._last) >= KINDS_MAX:
                self._last.clear()
            self._last[kind] = (now, 0)
        if kept_back:
            record.msg = f"{record.getMessage()} ({kept_back} more lines like this since the last)"
            record.args = ()
        return True

    @staticmethod
    def _kind(record: logging.LogRecord) -> tuple[object, ...]:
        """Return what a line says, without who says it: the library gives facility, client and text."""
        match record.args:
            case (str(facility), str(), str(text)):
                return record.levelno, facility, _VARIES.sub("", text)
            case _:
                return record.levelno, record.getMessage()


class Heard:
    """Hears what the library tells of its connections, which it mends by itself as long as it can: the last errors.

    It tells them in any thread's call of it.
    """

    def __init__(self) -> None:
        self.errors: list[KafkaError] = []

    def __call__(self, error: KafkaError) -> None:
        """Take in an error."""
        self.errors = [*self.errors[-4:], error]

    def forget(self) -> None:
        """Forget them: the connection works again."""
        self.errors = []


CLIENT_LOG = logging.getLogger("stormline.kafka")
CLIENT_LOG.addFilter(FewRepeats())
