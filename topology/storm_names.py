"""Names that Storm has otherwise: whoever asks for one, or defines one, is told the name that it has here."""

from __future__ import annotations

import inspect
import re
from abc import ABC
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from stormline.topology.errors import InvalidComponent

C = TypeVar("C", bound=type)


def camel_case(name: str) -> str:
    """Return a name as Java spells it: `get_string` as `getString`."""
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def snake_case(name: str) -> str:
    """Return a name as Python spells it: `getString` as `get_string`."""
    return re.sub(r"(?<=[a-z0-9])[A-Z]", lambda found: "_" + found[0], name).lower()


class StormName:
    """Stands in a class for a name of Storm's: asked for, it is an AttributeError that says the name here.

    One for each name, not a `__getattr__` for all of them: with that, CPython 3.11 looks up every attribute of an
    object two to four times as slowly, the hot path's too.
    """

    def __init__(self, storm: str, here: str) -> None:
        self._storm = storm
        self._here = here
        self.__doc__ = f"It is {here} here."  # shown by help()

    def __get__(self, obj: object, owner: type) -> NoReturn:
        raise AttributeError(f"{owner.__name__!r} has no attribute {self._storm!r}: it is {self._here} here")


def storm_names(**others: str) -> Callable[[C], C]:
    """Decorate a class: Java's spellings of its public names teach, and so do `others`: Storm's word = ours."""

    def teach(cls: C) -> C:
        spelt = {camel_case(name): name for name in dir(cls) if name[0] != "_" and name.islower()}
        in_python = {snake_case(storm): here for storm, here in others.items()}
        for storm, here in {**spelt, **in_python, **others}.items():
            if storm != here and not hasattr(cls, storm):
                setattr(cls, storm, StormName(storm, here))
        cls.__dir__ = _names_that_exist  # type: ignore[assignment]
        return cls

    return teach


def _names_that_exist(self: object) -> list[str]:
    of_class = type(self)
    return [
        name for name in object.__dir__(self) if not isinstance(inspect.getattr_static(of_class, name, None), StormName)
    ]


class StormInterface(ABC):
    """Base of what users implement: a method in Java's spelling is refused, since nothing would call it.

    Raises:
        InvalidComponent: a class defines `isReady`, say, while its `is_ready` is the one that it inherits from us.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for storm in vars(cls):
            here = snake_case(storm)
            if here == storm or not storm[0].islower():
                continue
            definer = next((base for base in cls.__mro__ if here in vars(base)), None)
            if definer is not None and definer.__module__.startswith("stormline."):
                raise InvalidComponent(f"class {cls.__name__} defines {storm}, which nothing calls: it is {here} here")
