"""Whether a function of the user's makes the same of its values in whatever order: tried on some of them."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from stormline.topology.errors import shown


def depends_on_order(combine: Callable[[Any, Any], Any], one: Any, other: Any) -> str | None:
    """Return how what is made of two values depends on their order, or on how they are put together; or None.

    A function that raises here, or whose results cannot be compared, is not judged. The values are not changed.
    """

    def made(first: Any, second: Any) -> Any:
        return combine(copy.deepcopy(first), copy.deepcopy(second))

    try:
        both, turned = made(one, other), made(other, one)
        if not _same(both, turned):
            return f"makes {shown(both)} of {shown(one)} and {shown(other)}, but {shown(turned)} the other way round"
        left, right = made(both, other), made(one, made(other, other))
        if not _same(left, right):
            return (
                f"makes {shown(left)} of {shown(one)}, {shown(other)} and {shown(other)} where the first two are "
                f"combined first, but {shown(right)} where the last two are"
            )
    except Exception:
        return None
    return None


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12) or (math.isnan(one) and math.isnan(other))
    if type(one) is not type(other) or "__eq__" not in _defined(type(one)):  # nobody can tell
        return True
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    return bool(one == other)


def _defined(kind: type) -> set[str]:
    return {name for base in kind.__mro__[:-1] for name in vars(base)}
