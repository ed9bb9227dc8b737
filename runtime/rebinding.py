"""What a bolt was given in `prepare` is not packed with its state: it is found again where the state is unpacked."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

_HERE = threading.local()


class CannotTravel(Exception):
    """The bolt holds something that cannot be packed, such as a connection, or of which a copy is not enough."""


class TaskConf(dict[str, Any]):
    """The `conf` that a task is given; when packed with a bolt's state, the receiver's own conf takes its place.

    So one that was changed since it was made cannot be packed.
    """

    def __init__(self, conf: Mapping[str, Any]) -> None:
        super().__init__(conf)
        self._made_as = _kept(dict(self))

    def __reduce__(self) -> tuple[Any, ...]:
        if dict(self) != self._made_as:
            raise CannotTravel("it has changed its conf, and finds that of another process where it finishes")
        return rebound, ("conf",)

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, memo: Any) -> dict[str, Any]:
        return copy.deepcopy(dict(self), memo)


def _kept(value: Any) -> Any:
    """Return a copy of dicts, lists and sets, down to what is none of these."""
    if isinstance(value, dict):
        return {key: _kept(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [*map(_kept, value)] if isinstance(value, list) else (*map(_kept, value),)
    return set(value) if isinstance(value, set) else value


def rebound(what: str) -> Any:
    """Return the present task's own `conf`, `context` or `collector`, or the `bolt` itself."""
    return _HERE.bindings[what]


@contextmanager
def bound(bindings: Mapping[str, Any]) -> Iterator[None]:
    """Let what is unpacked in this thread find these."""
    _HERE.bindings = bindings
    try:
        yield
    finally:
        del _HERE.bindings
