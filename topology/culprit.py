"""Culprit: what in an object keeps it from being sent or copied, and the way there; slow, so for errors alone."""

from __future__ import annotations

import functools
import types
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from stormline.topology.errors import shown
from stormline.topology.process_bound import ProcessBound

LEVELS_MAX = 6
VALUES_MAX = 2_000

_NO_VALUES = (types.GetSetDescriptorType, types.MemberDescriptorType)


class Way(Enum):
    """How one value holds another."""

    ATTRIBUTE = "attribute"
    CLASS_ATTRIBUTE = "class attribute"
    ITEM = "item"
    VARIABLE = "variable"


Step = tuple[Way, str]
ErrorOf = Callable[[Any], Exception | None]


@dataclass(frozen=True)
class Culprit:
    """A value that cannot be sent or copied, the steps to it, and what trying that raises."""

    steps: tuple[Step, ...]
    value: Any
    error: Exception

    @property
    def name(self) -> str:
        """What the whole object calls the part that holds the value."""
        return self.steps[0][1].strip("'")

    @property
    def path(self) -> str:
        """The steps as one would write them: `client.pool[0]._lock`."""
        path = self.name
        for way, name in self.steps[1:]:
            path += {Way.ITEM: f"[{name}]", Way.VARIABLE: f"'s variable {name}"}.get(way, f".{name}")
        return path

    @property
    def kind(self) -> str:
        """The class of the value, with its module."""
        return f"{type(self.value).__module__}.{type(self.value).__qualname__}"


def culprit_in(obj: Any, error_of: ErrorOf) -> Culprit | None:
    """Return what is at fault in `obj`; None where no part of it is.

    Args:
        error_of: tries a value, and returns what that raises.
    """
    nearest: Culprit | None = None
    seen = {id(obj)}
    kept: list[Any] = [obj]  # what is looked at must live, or its id stands for another object
    level: deque[tuple[tuple[Step, ...], Any, Exception | None]] = deque([((), obj, None)])
    while level:
        steps, value, error = level.popleft()
        if error is not None:
            nearest = nearest or Culprit(steps, value, error)
            if ProcessBound.of_unpicklable(type(value)) is not None or len(steps) == LEVELS_MAX:
                return Culprit(steps, value, error)
        whole = True
        for step, part in _parts(value, error_of):
            if len(kept) > VALUES_MAX:
                return nearest
            kept.append(part)
            if id(part) in seen:
                whole = whole and error_of(part) is None
                continue
            cause = error_of(part)
            if cause is not None:
                whole = False
                seen.add(id(part))
                level.append(((*steps, step), part, cause))
        if whole and error is not None:
            return Culprit(steps, value, error)
    return nearest


def _parts(value: Any, error_of: ErrorOf) -> Iterator[tuple[Step, Any]]:
    """Yield what goes with `value`, as far as it can be told from outside."""
    if isinstance(value, types.FunctionType):
        yield from _variables(value)
    elif isinstance(value, (staticmethod, classmethod)):
        yield from _variables(value.__func__)
    elif isinstance(value, types.MethodType):
        yield (Way.ATTRIBUTE, "__self__"), value.__self__
        yield (Way.ATTRIBUTE, "__func__"), value.__func__
    elif isinstance(value, type):
        yield from _class_attributes(value, error_of)
    else:
        if isinstance(value, dict):
            for key, item in value.items():
                yield (Way.ITEM, shown(key, 40)), item
        elif isinstance(value, (list, tuple, deque)):
            for i, item in enumerate(value):
                yield (Way.ITEM, str(i)), item
        elif isinstance(value, functools.partial):
            for name in ("func", "args", "keywords"):
                yield (Way.ATTRIBUTE, name), getattr(value, name)
        for name, attribute in _attributes(value):
            yield (Way.ATTRIBUTE, name), attribute
        if error_of(type(value)) is not None:
            yield from _class_attributes(type(value), error_of)


def _attributes(obj: Any) -> Iterator[tuple[str, Any]]:
    classes = type(obj).__mro__
    if any("__getstate__" in vars(cls) for cls in classes if cls is not object):
        try:
            state = obj.__getstate__()
        except Exception:
            return  # which is why it cannot be pickled, then
        for part in state if isinstance(state, tuple) else (state,):
            if isinstance(part, dict):
                yield from ((str(name), value) for name, value in part.items())
        return
    yield from getattr(obj, "__dict__", {}).items()
    for cls in classes:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name != "__dict__" and hasattr(obj, name):
                yield name, getattr(obj, name)


def _class_attributes(cls: type, error_of: ErrorOf) -> Iterator[tuple[Step, Any]]:
    """Yield what a class holds that is pickled whole: one of a script, or of a function."""
    for base in cls.__mro__:
        if base is cls or error_of(base) is not None:
            for name, value in list(vars(base).items()):
                if name != "_abc_impl" and not isinstance(value, _NO_VALUES):
                    yield (Way.CLASS_ATTRIBUTE, name), value


def _variables(function: Any) -> Iterator[tuple[Step, Any]]:
    """Yield the variables from outside that a function uses, and its defaults."""
    code = getattr(function, "__code__", None)
    if code is None:
        return
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield (Way.VARIABLE, name), cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    for name in _names(code):
        if name in function.__globals__:
            yield (Way.VARIABLE, name), function.__globals__[name]
    named = code.co_varnames[: code.co_argcount]
    defaults = function.__defaults__ or ()
    by_name = dict(zip(named[len(named) - len(defaults) :], defaults, strict=True))
    for name, value in {**by_name, **(function.__kwdefaults__ or {})}.items():
        yield (Way.VARIABLE, name), value


def _names(code: types.CodeType) -> Iterator[str]:
    """Yield the names that a function, and what is defined within it, may find in its module."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
