"""Failures from outside: while a program runs, its methods raise `FailedException` now and then, by a seed."""

from __future__ import annotations

import functools
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from stormline import FailedException


@dataclass(frozen=True)
class Share:
    """How many calls of a method fail: that many before it does anything, and that many when it has done all."""

    before: float = 0.0
    after: float = 0.0


# A coordinator that has returned a transaction's metadata has given it: nothing fails after that.
PLACES = {
    "prepare": Share(0.02),
    "execute": Share(0.01, 0.01),
    "finish_batch": Share(0.06, 0.06),
    "emit_batch": Share(0.1, 0.1),
    "emit_partition_batch_new": Share(0.1, 0.1),
    "emit_partition_batch": Share(0.1, 0.1),
    "commit": Share(0.1, 0.1),
    "is_ready": Share(0.1),
    "initialize_transaction": Share(0.1),
}
MOST = 12


class Failures:
    """What failed so far, by class and method; no more than `MOST` in all, so that every run ends."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.calls: Counter[str] = Counter()
        self.struck: Counter[str] = Counter()
        self._lock = threading.Lock()

    def strike(self, where: str, share: float) -> None:
        """Raise if it is time."""
        with self._lock:
            self.calls[where] += 1
            drawn = random.Random(f"{self.seed} {where} {self.calls[where]}").random()
            if drawn >= share or self.struck.total() >= MOST:
                return
            self.struck[where] += 1
        raise FailedException(f"on order, {where}")


@contextmanager
def failing(seed: int, *modules: ModuleType) -> Iterator[Failures]:
    """Let the methods of all classes of these modules fail."""
    failures = Failures(seed)
    undone: list[Callable[[], None]] = []
    for module in modules:
        for owner in _classes(module, module.__name__):
            for name, share in PLACES.items():
                method = vars(owner).get(name)
                if callable(method):
                    setattr(owner, name, _failing(method, f"{owner.__qualname__}.{name}", share, failures))
                    undone.append(functools.partial(setattr, owner, name, method))
    try:
        yield failures
    finally:
        for undo in undone:
            undo()


def _classes(owner: Any, module: str) -> Iterator[type]:
    for value in list(vars(owner).values()):
        if isinstance(value, type) and value.__module__ == module:
            yield value
            yield from _classes(value, module)


def _failing(method: Callable[..., Any], where: str, share: Share, failures: Failures) -> Callable[..., Any]:
    @functools.wraps(method)
    def called(*args: Any, **kwargs: Any) -> Any:
        failures.strike(f"before {where}", share.before)
        result = method(*args, **kwargs)
        failures.strike(f"after {where}", share.after)
        return result

    return called
