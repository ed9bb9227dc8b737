"""Finds a second way to what a bolt gathers: an attribute beside that holds the same object."""

from __future__ import annotations

import array
import collections
import functools
import gc
import types
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

_ITEMS_MAX = 256
"""Objects looked at."""

_GROWING = (list, dict, set, bytearray, collections.deque, array.array)  # and what is made of them
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()), memoryview, types.MappingProxyType)
_FOLLOWED = (
    *(*_GROWING, *_VIEWS, tuple, frozenset, types.CellType),
    *(functools.partial, types.BuiltinMethodType, types.MethodType),
)


def alias_in(others: Mapping[str, Any], gathered: Mapping[str, Any], bolt: object) -> tuple[str, str] | None:
    """Return (name, name of what is gathered) of an attribute that leads to a container that is gathered, or None.

    A bound method of it (`self.rows.append`), a view, a closure, a partial or another container leads to it, too.
    """
    sought = {id(value): name for name, value in gathered.items() if isinstance(value, _GROWING)}
    leading = [name for name, value in others.items() if _leads_on(value)] if sought else ()
    left = _ITEMS_MAX
    for other in leading:
        todo, known = [others[other]], {id(bolt)}
        while todo and left:
            left -= 1
            one = todo.pop()
            if id(one) in sought:
                return other, sought[id(one)]
            if id(one) not in known:
                known.add(id(one))
                todo += [inner for inner in _referred(one) if _leads_on(inner)]
    return None


def _leads_on(value: Any) -> bool:
    kind: type = type(value)
    return _is_followed(kind)


@lru_cache(maxsize=256)  # it is asked of each attribute, for each attempt
def _is_followed(kind: type) -> bool:
    return issubclass(kind, (*_FOLLOWED, types.FunctionType))


def _referred(value: Any) -> Iterable[Any]:
    """Return what a value leads to, as far as it may be a way that code takes to a container."""
    if isinstance(value, types.FunctionType):
        return [*(value.__closure__ or ()), *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
    return gc.get_referents(value)
