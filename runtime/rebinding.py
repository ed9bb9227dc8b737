"""What a bolt was given in `prepare` is not packed with its state: it is found again where the state is unpacked."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

_HERE = threading.local()


class TaskConf(dict[str, Any]):
    """The `conf` that a task is given; when packed with a bolt's state, the receiver's own conf takes its place."""

    def __reduce__(self) -> tuple[Any, ...]:
        return rebound, ("conf",)

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, memo: Any) -> dict[str, Any]:
        return copy.deepcopy(dict(self), memo)


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
