"""Whether the user code that runs here is still wanted: a thread cannot be stopped, but refused what it asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_wanted: ContextVar[Callable[[], bool] | None] = ContextVar("wanted", default=None)


def wanted_here() -> bool:
    """Return whether the calling user code is waited for; not so once another attempt, or thread, has its place."""
    wanted = _wanted.get()
    return wanted is None or wanted()


@contextmanager
def while_wanted(wanted: Callable[[], bool]) -> Iterator[None]:
    """Let `wanted` answer for the user code in the `with` block."""
    token = _wanted.set(wanted)
    try:
        yield
    finally:
        _wanted.reset(token)
