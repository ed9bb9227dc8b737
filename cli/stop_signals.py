"""StopSignals: SIGINT and SIGTERM ask a run to stop; the second one ends the process at once."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

_SHOW_CURSOR = b"\x1b[?25h"


class StopSignals:
    """A context manager of the main thread. `received` is the first signal, which the run looks at; it stays set.

    `committed`, once it is set, tells the last transaction that is known to be committed.

    Spark sets a SIGINT handler of its own when it is started by the main thread, so a run starts it in another one.
    """

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self.committed: Callable[[], int] | None = None
        self._before: dict[signal.Signals, Any] = {}

    @property
    def exit_code(self) -> int:
        """What a shell reports of a process that this signal has ended: 130 for SIGINT, 143 for SIGTERM."""
        assert self.received is not None
        return 128 + self.received

    def __enter__(self) -> StopSignals:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.received is None:
            self.received = signal.Signals(number)
            return
        cursor = _SHOW_CURSOR if os.isatty(2) else b""
        where = "" if self.committed is None else f", at transaction {self.committed()}"
        said = f"stopped at once{where}; what is committed stays committed: run again to go on\n"
        os.write(2, cursor + said.encode())
        os._exit(128 + number)
