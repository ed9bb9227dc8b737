"""What an object that exists now, or a part of something, is for the reader."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Mapping
from functools import lru_cache
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from stormline.cli.reading.classes import ClassView
from stormline.cli.reading.code import code_of, is_users
from stormline.cli.reading.live import is_a
from stormline.cli.reading.state import is_container
from stormline.cli.reading.values import Foreign, Function, Inside, Known, Object, Role, UserClass, Value, key_of

_ATTEMPT_FIELD = re.compile(r"id|tx.*|transaction.*|.*attempt.*|batch.*", re.I)
_TUPLES = ("tuple", "tuple.values", "tuple.get_values()")
_FUNCTIONS = (FunctionType, BuiltinFunctionType, MethodType, type(lru_cache(len)))


def object_value(found: Any, name: str, home: str, packages: frozenset[str], dotted: str | None = None) -> Value | None:
    """Return what an object that exists is for the reader."""
    if is_a(found, ModuleType):
        if is_users(found.__name__, getattr(found, "__file__", None), packages):
            return Known(found, name, home)
        return Foreign(found.__name__)
    if is_a(found, type):
        if is_users(found.__module__, file_of(found.__module__), packages):
            return UserClass(ClassView.of(found, packages))
        return Foreign(dotted or f"{found.__module__}.{found.__qualname__}".removeprefix("builtins."))
    if is_a(found, _FUNCTIONS):
        code = code_of(found, packages)
        if code is not None:
            return Function(code)
        own = f"{found.__module__ or '?'}.{getattr(found, '__qualname__', name)}"
        return Foreign(dotted or own.removeprefix("builtins."))
    return Known(found, name, home)


def held_value(found: Any, attr: str, module: Mapping[str, Any], packages: frozenset[str]) -> Value | None:
    """Return what an attribute of the declared object is: a copy of what a variable of the module has, or its own."""
    if is_a(found, (type, ModuleType, *_FUNCTIONS)):
        return object_value(found, attr, "", packages)
    cls = type(found)
    users = is_users(cls.__module__, file_of(cls.__module__), packages)
    if is_container(found) or (users and not pickles_itself(cls)):
        for name, value in module.items():
            if value is found:
                return Known(found, name, f"module {module.get('__name__')}", copied=True)
    if is_container(found):
        return None
    if users:
        return Object(ClassView.of(cls, packages), found)
    return Foreign(f"{cls.__module__}.{cls.__qualname__}()".removeprefix("builtins."))


def pickles_itself(cls: type) -> bool:
    """Return whether a class says how its objects are pickled."""
    ways = ("__getstate__", "__reduce__", "__reduce_ex__", "__getnewargs__", "__getnewargs_ex__", "__deepcopy__")
    return any(name in vars(base) for base in cls.__mro__ if base is not object for name in ways)


def agreed(values: list[Value | None]) -> Value | None:
    """Return what all of them stand for; None where they do not all stand for the same."""
    if not values or any(value is None for value in values):
        return None
    return values[0] if len({key_of(value) for value in values if value is not None}) == 1 else None


def item_of(base: Value | None, index: ast.expr) -> Value | None:
    """Return what `base[index]` stands for."""
    key = index.value if isinstance(index, ast.Constant) else None
    match base:
        case Known(value=value) if is_container(value):
            return Inside(base)
        case Inside():
            return base
        case Foreign(dotted=dotted):
            return Foreign(f"{dotted}[]", base.receiver, base.call)
        case Role(name=role) if role in _TUPLES and type(key) is int and key == 0:
            return Role("attempt")
        case Role(name=role) if role in _TUPLES and isinstance(key, str) and _ATTEMPT_FIELD.fullmatch(key):
            return Role("attempt?")
        case Role(name="attempt"):
            return Role("txid")
    return None


def file_of(module: str) -> str:
    """Return the file of a module that is imported."""
    return getattr(sys.modules.get(module), "__file__", None) or ""
