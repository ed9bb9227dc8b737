"""Partial results: how two become one, and how the key of a group is stored."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from stormline.state.aggregators import Aggregator, Reduce
from stormline.state.errors import InvalidAggregate, RefusedValue
from stormline.topology.errors import shown


def merged(aggregator: Aggregator, one: Any, other: Any) -> Any:
    """Return two partial results together; None is that of no values.

    Raises:
        InvalidAggregate: `combine` returns None, and what was counted so far would be forgotten.
        RefusedValue: a ready aggregator cannot combine values of these types.
    """
    if one is None or other is None:
        return other if one is None else one
    try:
        made = aggregator.combine(one, other)
    except TypeError as error:
        if type(aggregator).__module__ != Aggregator.__module__ or type(aggregator) is Reduce:
            raise
        raise RefusedValue(
            f"{type(aggregator).__name__} of field {aggregator.field!r} cannot combine {shown(one)} and "
            f"{shown(other)}: {error}; emit values of one type"
        ) from error
    if made is None:
        raise InvalidAggregate(
            f"{aggregator.named()} of field {aggregator.field!r} returns None for {shown(one)} and {shown(other)}, "
            "expected the one value that both make; let it return that, also where it changes the first one"
        )
    return made


def stored_part(python: type, part: Any) -> Any:
    """Return a part of a key as its column's type has it, where that is equal; else as it is, to be refused.

    A dict takes 1, True and 1.0 for the same, as a fields grouping does (docs/groupings.md), and keeps the first one:
    what is stored must not depend on which that was.
    """
    if type(part) is python:
        return part
    if python is str and isinstance(part, str):
        return str.__str__(part)
    if python in (int, bool) and isinstance(part, (int, float, Decimal)):
        try:
            whole = python(part)
        except (ArithmeticError, ValueError):  # infinite, or NaN
            return part
        return whole if whole == part else part
    return part
