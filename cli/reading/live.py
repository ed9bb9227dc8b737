"""Looks at objects that exist without running any of their code: a proxy answers by making what it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from types import GetSetDescriptorType, UnionType
from typing import Any


def is_a(value: Any, kinds: type | tuple[type, ...] | UnionType) -> bool:
    """Return whether an object is of a class by its type: `isinstance` would also ask the object."""
    return issubclass(type(value), kinds)


def attributes_of(value: Any) -> Mapping[str, Any]:
    """Return the attributes that an object itself has; none where its class makes up its `__dict__`."""
    for cls in type(value).__mro__:
        if "__dict__" in vars(cls):
            descriptor = vars(cls)["__dict__"]
            found = descriptor.__get__(value) if type(descriptor) is GetSetDescriptorType else None
            return found if isinstance(found, dict) else {}
    return {}
