"""Where the user code that runs here may have effects, as its author declares: what is stored elsewhere is refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_only: ContextVar[tuple[str, object] | None] = ContextVar("only", default=None)


def only_effects_here() -> tuple[str, object] | None:
    """Return the component that runs here, and the only place of its effects; None: it does not say."""
    return _only.get()


@contextmanager
def while_effects_only(component: str, target: object) -> Iterator[None]:
    """Let `target` be the only place of effects for the code of `component` in the `with` block."""
    token = _only.set((component, target))
    try:
        yield
    finally:
        _only.reset(token)
