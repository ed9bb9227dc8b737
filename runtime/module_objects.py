"""Which objects are those of the user's modules: a committer's database that is a dict of its module, a sentinel.

They are what they are by their identity: a copy that another process, or another object, holds is not the one meant.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import logging
import pathlib
import re
import sys
import types
import uuid
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Any

_TOLD_BY_VALUE = (
    *(type(None), bool, int, float, complex, str, bytes, tuple, frozenset, range),
    *(datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo),
    *(decimal.Decimal, fractions.Fraction, uuid.UUID, pathlib.PurePath),
    *(enum.Enum, re.Pattern, logging.Logger),
    *(type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType),
)
_LIBRARIES = {"stormline", "numpy", "pandas", "pyarrow"}


def is_users(module: str) -> bool:
    """Tell whether a module of this name is neither Python's nor one of the libraries that are known here."""
    top = module.partition(".")[0]
    return top == "__main__" or not (top in sys.stdlib_module_names or top in _LIBRARIES)


def is_told_by_value(obj: Any) -> bool:
    """Tell that a copy of an object does as well: it never changes, or a pickle names it and does not copy it."""
    kind = type(obj)
    if isinstance(obj, _TOLD_BY_VALUE) or kind.__module__.partition(".")[0] in ("stormline", "pyarrow"):
        return True
    return bool(getattr(getattr(kind, "__dataclass_params__", None), "frozen", False))


def objects_of(kind: type) -> set[int]:
    """Return the ids of what the modules and classes hold that a class's methods can name."""
    return {id(value) for values in _namespaces(kind) for value in values}


@lru_cache(maxsize=256)
def _namespaces(kind: type) -> tuple[Collection[Any], ...]:
    """Return views of the values of a class and its bases, of their modules, and of the modules and classes there."""
    found: dict[int, Any] = {}
    for klass in kind.__mro__:
        if is_users(klass.__module__):
            found[id(klass)] = klass.__dict__
            for function in _functions(klass):
                found[id(function.__globals__)] = function.__globals__
    for namespace in list(found.values()):
        for value in list(namespace.values()):
            if isinstance(value, (type, types.ModuleType)) and _is_users(value):
                found[id(value.__dict__)] = value.__dict__
    return tuple(namespace.values() for namespace in found.values())


def _is_users(module_or_class: Any) -> bool:
    if isinstance(module_or_class, type):
        return is_users(module_or_class.__module__)
    return is_users(module_or_class.__name__) and "site-packages" not in (
        getattr(module_or_class, "__file__", None) or ""
    )


def _functions(klass: type) -> Iterator[types.FunctionType]:
    for value in vars(klass).values():
        function = getattr(value, "__func__", getattr(value, "fget", value))
        if isinstance(function, types.FunctionType):
            yield function
