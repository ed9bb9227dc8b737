"""Which objects hold state that can be written, and by which methods."""

from __future__ import annotations

import array
import collections
import types
import weakref
from typing import Any

from stormline.cli.reading.live import is_a

_CONTAINERS = (
    dict,
    list,
    set,
    bytearray,
    array.array,
    collections.deque,
    collections.UserDict,
    collections.UserList,
    collections.ChainMap,
    weakref.WeakKeyDictionary,
    weakref.WeakValueDictionary,
    weakref.WeakSet,
)
GATHERING = frozenset(
    {
        "append",
        "appendleft",
        "add",
        "extend",
        "extendleft",
        "insert",
        "update",
        "subtract",
        "__setitem__",
        "symmetric_difference_update",
        "intersection_update",
        "difference_update",
    }
)
"""Methods of containers that put something in."""


def is_container(value: Any) -> bool:
    """Return whether an object holds other values, and can be given more."""
    return is_a(value, _CONTAINERS) or _is_array(value)


def is_namespace(value: Any) -> bool:
    """Return whether it is an object that only holds attributes."""
    return is_a(value, types.SimpleNamespace)


def _is_array(value: Any) -> bool:
    cls = type(value)
    return cls.__module__.partition(".")[0] in ("numpy", "pandas") and cls.__name__ in (
        "ndarray",
        "DataFrame",
        "Series",
    )
