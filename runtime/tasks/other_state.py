"""OtherState: what a bolt that gathers holds besides; what `execute` does to that would be lost on the way."""

from __future__ import annotations

import collections
import functools
import inspect
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from operator import is_
from typing import Any

from stormline.runtime.tasks.aliases import alias_in
from stormline.runtime.tasks.commit_calls import COMMIT_CALLS
from stormline.runtime.tasks.gathered import AT_COMMIT
from stormline.topology.errors import NotGathered

_ITEMS_MAX = 256
"""Objects looked at to tell whether a bolt changes what it does not gather."""

_CONTAINERS = frozenset({list, dict, set, bytearray, collections.deque, collections.defaultdict, collections.Counter})
_ATOMS = frozenset({str, bytes, int, float, bool, type(None)})

_Seen = tuple[Any, int | None, Any, Any]
"""A value; how much it holds, if that can be changed; what, as far as it was looked at; and those of it that hold
something in turn. A plain tuple: some are made around each call of `execute`."""


class OtherState:
    """What a bolt held after `prepare` besides what it gathers: `execute` must leave it as it was, or it would be lost.

    Found are attributes set anew, and changes of lists, dicts, sets and of objects of the bolt's own package, as far as
    256 objects go; of larger ones that they grow or shrink. What attributes and classes hold is compared around each
    `execute`, since what others prepare meanwhile may change what is shared with them.

    Args:
        alone: whether the bolt executes on the executors, where no `finish_batch` of another task may change what it
            shares with that. Else only attributes set anew are found; so too where one was called in this process
            meanwhile, as `InProcessCluster` does.
        who: whose state it is, for messages.

    Raises:
        NotGathered: another attribute holds, after `prepare`, an object that is gathered.
    """

    def __init__(self, bolt: Any, names: Sequence[str], alone: bool, who: str) -> None:
        self._bolt = bolt
        self._names = frozenset(names)
        self._who = who
        self._package = _package(type(bolt))
        self._classes = _users_classes(type(bolt)) if alone else ()  # type: ignore[arg-type]  # a type[Any]
        self._mark = COMMIT_CALLS.mark()
        self._left = _ITEMS_MAX
        self._attributes = self._of(bolt)
        self._holding = {n: v for n, v in self._attributes.items() if self._held(v) is not None} if alone else {}
        self._held_before: list[tuple[str, _Seen]] = []
        self._of_classes: list[dict[str, _Seen]] = []
        if alone:
            self._check_aliases()

    def _check_aliases(self) -> None:
        gathered = {name: getattr(self._bolt, name) for name in self._names if hasattr(self._bolt, name)}
        alias = alias_in(self._attributes, gathered, self._bolt)
        if alias is not None:
            other, name = alias
            raise NotGathered(
                f"{self._who} gathers {name!r}, and prepare() keeps the same object in {other!r} too: at the commit "
                f"{name!r} is what was gathered, and {other!r} would still be what prepare() made, without it. Use it "
                f"as self.{name} only, make {other!r} in finish_batch(), or name both in gathers if both are plain data"
            )

    def before_execute(self) -> None:
        """Look at what the bolt's attributes and classes hold."""
        self._mark = COMMIT_CALLS.mark()
        self._left = _ITEMS_MAX
        self._held_before = [(name, self._seen(value)) for name, value in self._holding.items()]
        self._left = _ITEMS_MAX
        self._of_classes = [self._all_seen(self._data_of(klass)) for klass in self._classes]

    def after_execute(self) -> None:
        """Raise `NotGathered` where `execute` has changed what the bolt's attributes or classes hold."""
        if self._mark is None or self._mark != COMMIT_CALLS.mark():
            return
        for name, seen in self._held_before:
            if not self._is_as_seen(seen):
                self._refuse("attribute", name)
        for klass, before in zip(self._classes, self._of_classes, strict=True):
            now = self._data_of(klass)
            for name in self._changed_in_class(before, now) if before or now else ():
                self._refuse(f"class attribute {klass.__name__}'s", name)

    def check(self) -> None:
        """Raise `NotGathered` where `execute` has set attributes anew that do not travel."""
        for name in _changed(self._attributes, self._of(self._bolt)):
            self._refuse("attribute", name)

    def _changed_in_class(self, before: Mapping[str, _Seen], now: Mapping[str, Any]) -> Iterator[str]:
        for name, value in now.items():
            seen = before.get(name)
            if seen is None or seen[0] is not value or not self._is_as_seen(seen):
                yield name
        yield from before.keys() - now.keys()

    def _refuse(self, what: str, name: str) -> None:
        if what != "attribute":
            remedy = "gather in an attribute of the object"
        elif isinstance(inspect.getattr_static(type(self._bolt), name, None), functools.cached_property):
            remedy = f"read self.{name}, a cached_property, in prepare(), so that each copy of the bolt works it out"
        else:
            remedy = f"add {name!r} to gathers"
        raise NotGathered(
            f"{self._who} changes {what} {name!r} in execute(), and gathers only {sorted(self._names)}: the change "
            f"would be lost on the way to the commit; {remedy}, or leave `gathers` out: {AT_COMMIT}"
        )

    def _of(self, bolt: Any) -> dict[str, Any]:
        names = self._names
        held = {name: value for name, value in getattr(bolt, "__dict__", {}).items() if name not in names}
        for name in _slot_names(type(bolt)):  # type: ignore[arg-type]  # mypy takes a type[Any] for unhashable
            if name not in names and hasattr(bolt, name):
                held[name] = getattr(bolt, name)
        return held

    def _data_of(self, klass: type) -> dict[str, Any]:
        held = vars(klass)
        names = _data_names(klass, len(held))
        return {name: held[name] for name in names if name in held} if names else {}

    def _all_seen(self, values: dict[str, Any]) -> dict[str, _Seen]:
        return {name: self._seen(value) for name, value in values.items()} if values else {}

    def _seen(self, value: Any) -> _Seen:
        held = self._held(value)
        if held is None or len(held) >= self._left:  # nothing that could be changed, or too much to look at
            return value, None if held is None else len(held), None, ()
        self._left -= 1 + len(held)
        items = _items(held)
        return value, len(held), items, [self._seen(one) for one in items if type(one) not in _ATOMS]

    def _held(self, value: Any) -> Any:
        """Return what holds the items of a value; None where it has none, or nobody here may tell who changed them."""
        kind: type = type(value)
        if kind in _ATOMS or value is self._bolt:
            return None
        if kind in _CONTAINERS:
            return value
        return getattr(value, "__dict__", ()) if _is_of(kind, self._package) else None

    def _is_as_seen(self, seen: _Seen) -> bool:
        value, size, items, holding = seen
        if size is None:
            return True
        held = self._held(value)
        if len(held) != size:
            return False
        return items is None or (all(map(is_, items, _items(held))) and all(map(self._is_as_seen, holding)))


def _changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Give the names under which there is another object than before, or none any more."""
    for name, value in now.items():
        if name not in before or before[name] is not value:
            yield name
    yield from before.keys() - now.keys()


@lru_cache(maxsize=256)
def _slot_names(kind: type) -> tuple[str, ...]:
    """Return the names of a class's slots, as they are known to `getattr`."""
    names = []
    for klass in kind.__mro__:
        slots = vars(klass).get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            private = slot.startswith("__") and not slot.endswith("__")
            if slot not in ("__dict__", "__weakref__"):
                names.append(f"_{klass.__name__.lstrip('_')}{slot}" if private else slot)
    return tuple(names)


@lru_cache(maxsize=256)  # it is asked around each call of `execute`
def _data_names(klass: type, entries: int) -> tuple[str, ...]:
    """Return under which names a class that has so many `entries` holds data, and not code, nor what is abc's own."""
    return tuple(
        name
        for name, value in list(vars(klass).items())
        if not (name == "_abc_impl" or name.startswith("__") or callable(value) or hasattr(value, "__get__"))
    )


def _items(held: Any) -> list[Any]:
    return [*held.keys(), *held.values()] if isinstance(held, dict) else [*held]


def _package(klass: type) -> str:
    return klass.__module__.partition(".")[0]


@lru_cache(maxsize=256)
def _users_classes(kind: type) -> tuple[type, ...]:
    return tuple(klass for klass in kind.__mro__ if _is_users(klass))


@lru_cache(maxsize=256)  # it is asked of each value around each call of `execute`
def _is_of(kind: type, package: str) -> bool:
    return _is_users(kind) and _package(kind) == package


def _is_users(klass: type) -> bool:
    return _package(klass) not in ("builtins", "abc", "typing", "stormline")
