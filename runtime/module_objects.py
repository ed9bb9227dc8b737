"""Which objects a bolt shares with the user's modules: a committer's database that is a dict of its module, a sentinel.

They are what they are by their identity: a copy that another process, or another object, holds is not the one meant.
Whether a bolt shares anything is told as Python's garbage collector tells it: by an object to which more references
lead than those from within. Only then are the modules looked through.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import functools
import gc
import logging
import operator
import pathlib
import re
import sys
import types
import uuid
import weakref
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Any

from stormline.runtime.rebinding import CannotTravel, TaskConf

OBJECTS_MAX = 250_000
"""Objects of a bolt's modules above which these are not looked through, where its tuples can travel in its stead."""

_CACHED = type(lru_cache(len))
_TOLD_BY_VALUE = (
    *(type(None), bool, int, float, complex, str, bytes, range),
    *(datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo),
    *(decimal.Decimal, fractions.Fraction, uuid.UUID, pathlib.PurePath),
    *(re.Pattern, logging.Logger),
    *(type, types.FunctionType, types.ModuleType, types.CodeType, types.FrameType, types.TracebackType),
    *(weakref.ReferenceType, TaskConf),
)
_TOLD_BY_WHAT_THEY_HOLD = (
    *(tuple, frozenset, enum.Enum, functools.partial, _CACHED, types.MappingProxyType, types.CellType),
    *(operator.itemgetter, operator.attrgetter, operator.methodcaller),
    *(types.BuiltinFunctionType, types.MethodType, types.MethodWrapperType, staticmethod, classmethod, property),
)
_LIBRARIES = {"stormline", "numpy", "pandas", "pyarrow"}
_MACHINERY = {"abc", "_abc", "dataclasses", "importlib", "logging", "typing", "typing_extensions", "zipimport"}
_MACHINERY |= {"_frozen_importlib", "_frozen_importlib_external", "pyarrow"}


class _Kind(enum.Enum):
    """How objects of one class are told from one another."""

    BY_VALUE = enum.auto()
    """A copy does as well: it never changes, or a pickle names it and does not copy it."""
    BY_WHAT_IT_HOLDS = enum.auto()
    """A copy does as well, if copies of all that it holds do."""
    BY_IDENTITY = enum.auto()
    """It can be changed; so may what it holds."""
    CLOSED = enum.auto()
    """It can be changed; what it holds is its own."""


def is_users(module: str) -> bool:
    """Tell whether a module of this name is neither Python's nor one of the libraries that are known here."""
    top = _top(module)
    return top == "__main__" or not (top in sys.stdlib_module_names or top in _LIBRARIES)


def _top(module: Any) -> str:
    """Return the name of the package that a module is part of."""
    return str(module).partition(".")[0]


@lru_cache(maxsize=1024)
def _kind(kind: type) -> _Kind:
    top = _top(kind.__module__)
    if issubclass(kind, _TOLD_BY_VALUE) or top in _MACHINERY:
        return _Kind.BY_VALUE
    if top == "stormline":
        return _Kind.BY_IDENTITY if issubclass(kind, (list, dict)) else _Kind.BY_VALUE
    if issubclass(kind, _TOLD_BY_WHAT_THEY_HOLD):
        return _Kind.BY_WHAT_IT_HOLDS
    if getattr(getattr(kind, "__dataclass_params__", None), "frozen", False):
        return _Kind.BY_WHAT_IT_HOLDS
    if top in ("numpy", "pandas"):
        names = {klass.__name__ for klass in kind.__mro__}
        changes = names & {"ndarray", "void", "DataFrame", "Series", "Generator", "RandomState"}
        return _Kind.CLOSED if changes else _Kind.BY_VALUE
    return _Kind.CLOSED if top in ("py4j", "pyspark") else _Kind.BY_IDENTITY


def _count_of_one_held_once() -> int:
    owner: list[list[Any]] = [[]]
    level = list(owner)
    return max(map(sys.getrefcount, level))


_HELD_ONCE = _count_of_one_held_once()
"""Number of references, as this Python counts them, to what is held once, and is in a list at which we look."""


def held_elsewhere(holders: Collection[Any]) -> list[Any]:
    """Return what is held within, by `holders` or by what they hold, and by others too; at times more, never less.

    No two of the holders may hold by one and the same reference.
    """
    objects, within = _held_often(holders)
    counts = list(map(sys.getrefcount, objects))
    return [obj for obj, count, n in zip(objects, counts, within, strict=True) if count - _HELD_ONCE + 1 > n]


def _held_often(holders: Collection[Any]) -> tuple[list[Any], list[int]]:
    """Return what is held more than once, and how often from within."""
    found: dict[int, Any] = {}
    within: dict[int, int] = {}
    leave = set(map(id, holders))
    level, kinds = _sifted(_held_by_each(holders))
    while level:
        if max(map(sys.getrefcount, level)) > _HELD_ONCE:  # else no second way leads to any
            level = _first_met(level, found, within, leave)
        level, kinds = _sifted(_held_by_all(level, kinds))
    return list(found.values()), list(within.values())


def _first_met(level: list[Any], found: dict[int, Any], within: dict[int, int], leave: set[int]) -> list[Any]:
    """Take note of what is held more than once; return what was not met before."""
    fresh = []
    for obj, count in zip(level, list(map(sys.getrefcount, level)), strict=True):
        at = id(obj)
        if count <= _HELD_ONCE:
            fresh.append(obj)
        elif at in within:
            within[at] += 1
        elif at not in leave:
            found[at], within[at] = obj, 1
            fresh.append(obj)
    return fresh


def changing(objects: list[Any], objects_max: int | None = None) -> dict[int, Any]:
    """Return by id what can be changed of `objects` and of all that can be reached from them.

    Raises:
        CannotTravel: they are more than `objects_max`.
    """
    met: dict[int, Any] = {}
    found: dict[int, Any] = {}
    level, kinds = _sifted(objects)
    while level:
        fresh = {id(obj): obj for obj in level if id(obj) not in met}
        met |= fresh
        found |= {at: obj for at, obj in fresh.items() if kinds[type(obj)] is not _Kind.BY_WHAT_IT_HOLDS}
        held = _held_by_all(list(fresh.values()), kinds)
        if objects_max is not None and len(met) + len(held) > objects_max:
            raise CannotTravel(
                f"others hold what it holds, and its modules have over {objects_max} objects: too many to look "
                "for it there, where a copy would be changed instead of it"
            )
        level, kinds = _sifted(held)
    return found


def _sifted(objects: list[Any]) -> tuple[list[Any], dict[type, _Kind]]:
    """Return objects without what is told by value, and their classes."""
    every: set[Any] = set(map(type, objects))
    kinds: dict[type, _Kind] = {kind: told for kind in every if (told := _kind(kind)) is not _Kind.BY_VALUE}
    if len(kinds) == len(every):
        return objects, kinds
    return [obj for obj in objects if type(obj) in kinds] if kinds else [], kinds


def _held_by_all(objects: list[Any], kinds: dict[type, _Kind]) -> list[Any]:
    """Return what objects of these classes refer to, with all repetitions."""
    apart = {kind for kind, told in kinds.items() if told is not _Kind.BY_IDENTITY and kind is not tuple}
    if not apart:  # of most bolts all that they hold
        return gc.get_referents(*objects)
    together = [obj for obj in objects if type(obj) not in apart]
    return gc.get_referents(*together) + _held_by_each(obj for obj in objects if type(obj) in apart)


def _held_by_each(objects: Iterable[Any]) -> list[Any]:
    """Return what objects refer to; in the place of their own `__dict__` what that holds."""
    return [one for obj in objects for one in _held_by(obj)]


def _held_by(obj: Any) -> list[Any]:
    kind: Any = type(obj)
    if issubclass(kind, functools.partial):
        return [obj.func, *obj.args, *obj.keywords.values()]
    if _kind(kind) is _Kind.CLOSED:  # of an array's objects the garbage collector knows nothing
        return list(obj.flat) if kind.__name__ == "ndarray" and obj.dtype.hasobject else []
    held = gc.get_referents(obj)
    own = None if issubclass(kind, type) else getattr(obj, "__dict__", None)
    if type(own) is dict and any(one is own for one in held):
        return [*(one for one in held if one is not own), *own.values()]
    return held


# ---------------------------------------------------------------------------------------- modules


def objects_of(kind: type, objects_max: int | None = OBJECTS_MAX) -> set[int]:
    """Return the ids of all that can be changed and that a class's methods can come to by what their modules name.

    Raises:
        CannotTravel: these hold more than `objects_max` objects.
    """
    return set(changing(_held_by_each(_namespaces(kind, len(sys.modules))), objects_max))


@lru_cache(maxsize=256)
def _namespaces(kind: type, modules: int) -> tuple[Any, ...]:
    """Return a class, its bases and their modules, with the users' modules, classes and functions that these name.

    Args:
        modules: how many there are, for more of them may have been imported since.
    """
    own = [klass for klass in kind.__mro__ if is_users(klass.__module__)]
    tops = {_top(klass.__module__) for klass in own}
    found: dict[int, Any] = {}
    todo: list[Any] = [*own, *(vars(sys.modules[name]) for name in {k.__module__ for k in own} & sys.modules.keys())]
    while todo:
        named = todo.pop()
        if id(named) in found:
            continue
        found[id(named)] = named
        if isinstance(named, (type, dict)):
            for value in list(vars(named).values() if isinstance(named, type) else named.values()):
                todo += _named_by(value, tops)
    return tuple(found.values())


def _named_by(value: Any, tops: set[str]) -> list[Any]:
    """Return what a value of a module or class leads to: users' classes, modules' names, what their functions keep."""
    kind = type(value)
    while kind in (staticmethod, classmethod, property, _CACHED):
        value = value.fget if kind is property else value.__wrapped__
        kind = type(value)
    if issubclass(kind, type):
        return [klass for klass in value.__mro__ if _is_looked_through(klass.__module__, tops)]
    if issubclass(kind, types.ModuleType):
        return [value.__dict__] if _is_looked_through(value.__name__, tops) else []
    if kind is types.FunctionType and _is_looked_through(value.__globals__.get("__name__"), tops):
        kept = (*(value.__closure__ or ()), value.__defaults__, value.__kwdefaults__)
        return [value.__globals__, value.__dict__, *(one for one in kept if one is not None)]
    return []


def _is_looked_through(module: Any, tops: set[str]) -> bool:
    """Tell whether a module is the user's: of what is installed, only the packages of the bolt's own class are."""
    if _top(module) in tops:
        return True
    return is_users(str(module)) and "site-packages" not in (
        getattr(sys.modules.get(str(module)), "__file__", None) or ""
    )
