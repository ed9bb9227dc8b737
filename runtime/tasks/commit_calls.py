"""CommitCalls: knows when user code of a commit is called in this process."""

from __future__ import annotations

import threading
from typing import Any


class CommitCalls:
    """Knows when user code of a commit is called in this process: what it changes is not `execute`'s doing.

    A context manager around each call.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begun = self._running = 0

    def __enter__(self) -> None:
        with self._lock:
            self._running += 1  # first: see `mark`
            self._begun += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: Any) -> None:
        with self._lock:
            self._running -= 1

    def mark(self) -> int | None:
        """Return what stays equal for as long as there is no call; None: there is one now.

        It takes no lock: a call that begins between the two steps is one that runs, or one that the number lacks.
        """
        begun = self._begun
        return None if self._running else begun


COMMIT_CALLS = CommitCalls()
