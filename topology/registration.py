"""Registration: a user's class that may travel, and how it is written and read."""

from __future__ import annotations

import dataclasses
import enum
import functools
import reprlib
from collections.abc import Set
from typing import Any, Protocol

from stormline.topology.built_in_types import BUILT_IN, NATIVE
from stormline.topology.errors import CorruptData, InvalidRegistration, UnregisteredClass

_HOLDING = frozenset({int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset, BaseException})


class Serializer(Protocol):
    """Turns objects of one class into built-in values and back."""

    def to_data(self, obj: Any) -> Any:
        """Return `obj` as values that are serializable already."""

    def from_data(self, data: Any) -> Any:
        """Return the object that `to_data` gave `data` for."""


def _check_fields(cls: type, required: Set[str], names: Set[str], data: Any) -> None:
    if type(data) is not dict or not required <= data.keys() <= names:
        raise CorruptData(f"a {cls.__qualname__} needs the fields {sorted(names)}, got {reprlib.repr(data)}")


class _NamedTupleSerializer:
    """Writes the fields by name: one whose order in the class has changed since is found again."""

    def __init__(self, cls: Any) -> None:
        self._cls = cls
        self._required = cls._field_defaults.keys() ^ cls._fields

    def to_data(self, obj: Any) -> Any:
        return dict(zip(self._cls._fields, obj, strict=True))

    def from_data(self, data: Any) -> Any:
        _check_fields(self._cls, self._required, frozenset(self._cls._fields), data)
        values = {**self._cls._field_defaults, **data}
        return self._cls._make(values[name] for name in self._cls._fields)


class _DataclassSerializer:
    """Writes the fields, those of bases and those outside `__init__` too; `__init__` does not run again."""

    def __init__(self, cls: Any) -> None:
        self._cls = cls
        fields = dataclasses.fields(cls)
        self._names = frozenset(field.name for field in fields)
        self._required = frozenset(field.name for field in fields if field.init)

    def to_data(self, obj: Any) -> Any:
        attributes = getattr(obj, "__dict__", {})
        if len(attributes) > len(self._names) or not attributes.keys() <= self._names:
            self._check_attributes(attributes)
        return {name: getattr(obj, name) for name in sorted(self._names) if hasattr(obj, name)}

    def _check_attributes(self, attributes: dict[str, Any]) -> None:
        for name in attributes:
            # What a cached_property keeps is computed again; anything else would be lost.
            if name not in self._names and not isinstance(getattr(self._cls, name, None), functools.cached_property):
                raise UnregisteredClass(
                    f"attribute {name!r} of a {self._cls.__qualname__} is no field of the dataclass and would be lost; "
                    f"declare it as a field, with field(init=False), or register {self._cls.__qualname__} with a "
                    "serializer"
                )

    def from_data(self, data: Any) -> Any:
        _check_fields(self._cls, self._required, self._names, data)
        obj = self._cls.__new__(self._cls)
        for name, value in data.items():
            object.__setattr__(obj, name, value)
        return obj


class _EnumSerializer:
    def __init__(self, cls: Any) -> None:
        self._cls = cls

    def to_data(self, obj: Any) -> Any:
        return obj.name

    def from_data(self, data: Any) -> Any:
        return self._cls[data]


class _FlagSerializer:
    def __init__(self, cls: Any) -> None:
        self._cls = cls

    def to_data(self, obj: Any) -> Any:
        return obj.value  # combinations have no name

    def from_data(self, data: Any) -> Any:
        return self._cls(data)


def _default_serializer(cls: type) -> Serializer:
    if issubclass(cls, enum.Enum):  # first: an Enum of dataclass members is both
        return _FlagSerializer(cls) if issubclass(cls, enum.Flag) else _EnumSerializer(cls)
    if issubclass(cls, tuple) and hasattr(cls, "_make"):
        return _NamedTupleSerializer(cls)
    if dataclasses.is_dataclass(cls):
        holding = [base.__qualname__ for base in cls.__mro__ if base in _HOLDING]
        if holding:
            raise InvalidRegistration(
                f"dataclass {cls.__qualname__} is a {holding[0]} too, which holds more than its fields; "
                "pass a serializer with to_data(obj) and from_data(data)"
            )
        return _DataclassSerializer(cls)
    raise InvalidRegistration(
        f"class {cls.__qualname__} is no dataclass, NamedTuple or Enum; "
        "pass a serializer with to_data(obj) and from_data(data)"
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Registration:
    """A class that may travel, under a name that does not depend on the order of registrations."""

    cls: type
    serializer: Serializer
    name: str

    @classmethod
    def of(cls, target: type, serializer: Serializer | type[Serializer] | None = None) -> Registration:
        """Register `target`; dataclasses, NamedTuples and Enums need no serializer.

        Raises:
            InvalidRegistration: `target` is no class, is built in, or needs a serializer.
        """
        if not isinstance(target, type):
            raise InvalidRegistration(f"register_serialization got {target!r}, expected a class")
        if target in NATIVE or target in BUILT_IN:
            raise InvalidRegistration(f"class {target.__qualname__} is built in and needs no registration; remove it")
        if serializer is None:
            serializer = _default_serializer(target)
        elif isinstance(serializer, type):
            try:
                serializer = serializer()
            except TypeError as error:
                raise InvalidRegistration(
                    f"the serializer of {target.__qualname__} cannot be made: {error}; pass an object instead"
                ) from error
        if not (hasattr(serializer, "to_data") and hasattr(serializer, "from_data")):
            raise InvalidRegistration(
                f"the serializer of {target.__qualname__} is a {type(serializer).__name__} without "
                "to_data(obj) and from_data(data)"
            )
        return cls(target, serializer, f"{target.__module__}.{target.__qualname__}")
