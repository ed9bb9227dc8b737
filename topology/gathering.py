"""What a deferred bolt says it gathers, so that it may be executed on the executors: checked when it is declared."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterator
from functools import cache
from types import CodeType
from typing import Any

from stormline.topology.contracts import AnyBatchBolt, AnyComponent
from stormline.topology.errors import InvalidGathers, did_you_mean

_BY_NAME = frozenset({"setattr", "__setattr__", "__dict__", "vars"})
"""Names in code that may set attributes of any name."""


def gathered_by(bolt: AnyComponent) -> tuple[str, ...] | None:
    """Return the attributes that a bolt gathers in; None: it does not say, so it executes at the commit if deferred."""
    return tuple(bolt.gathers) if isinstance(bolt, AnyBatchBolt) and bolt.gathers is not None else None


def executes_at_commit(bolt: AnyComponent, deferred: bool) -> bool:
    """Return whether a bolt executes in the commit phase only: it is deferred, and does not say what it gathers."""
    return deferred and gathered_by(bolt) is None


def check_gathers(bolt_id: str, bolt: AnyComponent) -> None:
    """Check that `gathers` names attributes of the bolt.

    Raises:
        InvalidGathers: it is no sequence of names, names one twice, or one that nothing sets, or nothing can set.
    """
    who = f"bolt {bolt_id!r} ({type(bolt).__name__})"
    if not isinstance(bolt, AnyBatchBolt):
        if (names := getattr(bolt, "gathers", None)) is not None:  # no member of its contract
            raise InvalidGathers(
                f"{who} has gathers = {names!r}, and is a BasicBolt, which gathers nothing: it never learns of "
                "batches; leave gathers out, or make it a BaseBatchBolt"
            )
        return
    names = bolt.gathers
    if names is None:
        return
    if not isinstance(names, (tuple, list)) or not all(isinstance(name, str) for name in names):
        hint = f"; write gathers = ({names!r},), with the comma" if isinstance(names, str) else ""
        raise InvalidGathers(f"{who} has gathers = {names!r}, expected a tuple of attributes' names{hint}")
    known = None
    for i, name in enumerate(names):
        if name in names[:i]:
            raise InvalidGathers(f"{who} names {name!r} twice in gathers = {names!r}")
        if isinstance(found := inspect.getattr_static(type(bolt), name, None), property) and found.fset is None:
            raise InvalidGathers(
                f"{who} gathers {name!r}, a property of {type(bolt).__name__} that cannot be set; name the attributes "
                "that it is worked out from"
            )
        known = _attributes(bolt) if known is None else known
        if name not in known and _BY_NAME.isdisjoint(known):
            raise InvalidGathers(
                f"{who} gathers {name!r}, an attribute that no method of {type(bolt).__name__} sets"
                f"{did_you_mean(name, sorted(known))}; name those that execute() changes, and annotate in the class "
                f"what functions beside it set, as {name}: Any"
            )


def _attributes(bolt: Any) -> set[str]:
    """Return the names of all attributes that a bolt has, or that its methods set."""
    found = {*getattr(bolt, "__dict__", ()), *names_set_by(type(bolt))}
    for klass in _users_classes(type(bolt)):
        found.update(name for name, value in vars(klass).items() if not name.startswith("__") and not callable(value))
    return found


def names_set_by(klass: type) -> set[str]:
    """Return the names of attributes that a class annotates, or that its methods set on any object.

    `_BY_NAME` are among them where a method may set attributes of any name.
    """
    found: set[str] = set()
    for base in _users_classes(klass):
        found.update(getattr(base, "__annotations__", {}))
        for value in vars(base).values():
            code = getattr(getattr(value, "__wrapped__", value), "__code__", None)
            if isinstance(code, CodeType):
                found.update(_set_in(code))
    return found


def _users_classes(klass: type) -> list[type]:
    return [base for base in klass.__mro__ if not base.__module__.startswith("stormline.topology.")]


@cache
def _set_in(code: CodeType) -> frozenset[str]:
    return frozenset(_names_set_in(code))


def _names_set_in(code: CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if instruction.opname == "STORE_ATTR":
            yield str(instruction.argval)
    yield from _BY_NAME.intersection(code.co_names)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names_set_in(inner)
