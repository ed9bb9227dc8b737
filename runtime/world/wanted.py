"""Whether the user code that runs here is still wanted: a thread cannot be stopped, but refused what it asks for."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

_wanted: ContextVar[Callable[[], bool] | None] = ContextVar("wanted", default=None)


def wanted_here() -> bool:
    """Return whether the calling user code is waited for; not so once another attempt, or thread, has its place."""
    wanted = _wanted.get()
    return wanted is None or wanted()


class WhileWanted:
    """Lets `wanted` answer for the user code in the `with` block. No generator: each commit makes one, or several."""

    def __init__(self, wanted: Callable[[], bool]) -> None:
        self._answer = wanted

    def __enter__(self) -> None:
        self._token = _wanted.set(self._answer)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: object) -> None:
        _wanted.reset(self._token)
