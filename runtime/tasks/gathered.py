"""What a deferred bolt gathered on the executors, on its way to the commit: the attributes it names, as plain data.

Pickles in Spark's own channel, of the process that made them; none is ever stored. Registered classes are msgpack.
"""

from __future__ import annotations

import array
import collections
import datetime
import decimal
import enum
import fractions
import io
import ipaddress
import pathlib
import pickle
import re
import threading
import types
import uuid
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from stormline.runtime.tuples.packing import reduced_array
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.errors import NotGathered, UnregisteredClass
from stormline.topology.fields import Fields, Values
from stormline.topology.serialization import Registry
from stormline.topology.tuples import Tuple, TupleSource

_PLAIN: frozenset[type] = frozenset(
    {
        *(complex, range, slice, bytearray, type(...), type(NotImplemented)),
        *(datetime.date, datetime.time, datetime.datetime, datetime.timedelta, datetime.timezone),
        *(decimal.Decimal, fractions.Fraction, uuid.UUID, uuid.SafeUUID, re.Pattern, array.array),
        *(collections.Counter, collections.OrderedDict, collections.defaultdict, collections.deque),
        *(ipaddress.IPv4Address, ipaddress.IPv6Address, ipaddress.IPv4Network, ipaddress.IPv6Network),
        *(pathlib.PurePosixPath, pathlib.PureWindowsPath, pathlib.PosixPath),
        *(TransactionAttempt, Tuple, TupleSource, Fields, Values),
    }
)
_CODE = (type, types.FunctionType, types.BuiltinFunctionType)  # by name: they hold nothing that was gathered
_DATA_LIBRARIES = frozenset({"numpy", "pandas", "polars", "pyarrow", "zoneinfo"})


_AT_COMMIT = "the bolt is then executed at the commit, in the driver"


class _NotPlain(Exception):
    """Holds an object that is no plain data."""


def _registered(packed: bytes) -> Any:
    """Stands in a pickle where the receiver's registry reads a registered class."""
    raise AssertionError("found by _Unpickler only")


class _Pickler(pickle.Pickler):
    """Refuses what is no plain data. Of a slice of a record batch its own rows travel, not all it was cut from."""

    def __init__(self, file: io.BytesIO, registry: Registry) -> None:
        super().__init__(file, protocol=5)
        self._registry = registry

    def reducer_override(self, obj: Any) -> Any:
        kind: type = type(obj)
        if kind in _PLAIN or isinstance(obj, _CODE):
            return NotImplemented
        if kind.__name__ == "cython_function_or_method":  # by name, too
            return NotImplemented
        library = kind.__module__.partition(".")[0]
        if library == "pyarrow":
            return reduced_array(obj)
        if library in _DATA_LIBRARIES and kind.__name__ != "memmap":
            return NotImplemented
        try:
            return _registered, (self._registry.pack(obj),)
        except UnregisteredClass:
            if isinstance(obj, enum.Enum):  # by name
                return NotImplemented
            raise _NotPlain(f"a {kind.__module__}.{kind.__qualname__}") from None


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, registry: Registry) -> None:
        super().__init__(file)
        self._registry = registry

    def find_class(self, module: str, name: str, /) -> Any:
        if module == __name__ and name == _registered.__name__:
            return self._registry.unpack
        return super().find_class(module, name)


def pack_gathered(bolt: Any, names: Sequence[str], who: str, registry: Registry) -> bytes:
    """Return the attributes of `names`, and which of them a bolt has not, as bytes.

    Raises:
        NotGathered: one holds what is no plain data; the message names `who` and the attribute.
    """
    values = {name: getattr(bolt, name) for name in names if hasattr(bolt, name)}
    try:
        return _packed((values, [name for name in names if name not in values]), registry)
    except Exception:
        for name, value in values.items():
            try:
                _packed(value, registry)
            except Exception as error:
                what = str(error) if isinstance(error, _NotPlain) else f"what cannot travel ({error})"
                raise NotGathered(
                    f"{who} gathers {name!r}, which holds {what}; what travels to the commit is plain data: numbers, "
                    "text, bytes, dates, containers of them, arrays, classes registered by register_serialization(). "
                    f"Make {name!r} of these, or leave `gathers` out: {_AT_COMMIT}"
                ) from None
        raise


def _packed(values: Any, registry: Registry) -> bytes:
    packed = io.BytesIO()
    _Pickler(packed, registry).dump(values)
    return packed.getvalue()


def restore_gathered(bolt: Any, packed: bytes, registry: Registry) -> None:
    """Give `bolt`, a fresh copy that was prepared, the attributes that `pack_gathered` packed; it loses the others."""
    values, missing = _Unpickler(io.BytesIO(packed), registry).load()
    for name, value in values.items():
        setattr(bolt, name, value)
    for name in missing:
        if hasattr(bolt, name):  # `prepare` has set it, and `execute` has deleted it
            delattr(bolt, name)


# ---------------------------------------------------------------------------------------- what is not gathered

_ITEMS_MAX = 256
"""Objects looked at to tell whether a bolt changes what it does not gather."""

_CONTAINERS = frozenset({list, dict, set, bytearray, collections.deque, collections.defaultdict, collections.Counter})


class CommitCalls:
    """Knows when user code of a commit is called in this process: what it changes is not `execute`'s doing.

    A context manager around each call.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begun = self._running = 0

    def __enter__(self) -> None:
        with self._lock:
            self._running += 1  # first: see `mark`
            self._begun += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: Any) -> None:
        with self._lock:
            self._running -= 1

    def mark(self) -> int | None:
        """Return what stays equal for as long as there is no call; None: there is one now.

        It takes no lock: a call that begins between the two steps is one that runs, or one that the number lacks.
        """
        begun = self._begun
        return None if self._running else begun


COMMIT_CALLS = CommitCalls()


_Seen = tuple[Any, int | None, Any]
"""A value; how much it holds, if that can be changed; and what, as far as it was looked at. A plain tuple: some are
made around each call of `execute`."""


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


class OtherState:
    """What a bolt held after `prepare` besides what it gathers: `execute` must leave it as it was, or it would be lost.

    Told are attributes set anew, and changes of lists, dicts, sets and of objects of the bolt's own package, as far as
    256 objects go; of larger ones that they grow or shrink. What its classes hold is compared around each `execute`,
    since what others prepare meanwhile may change that.

    Args:
        alone: whether no other task's `finish_batch` may change what this bolt shares with it meanwhile. Else only
            attributes set anew are told; so too where one was called in this process meanwhile, as `InProcessCluster`
            does.
    """

    def __init__(self, bolt: Any, names: Sequence[str], alone: bool) -> None:
        self._bolt = bolt
        self._names = frozenset(names)
        self._package = _package(type(bolt))
        self._classes = _users_classes(type(bolt)) if alone else ()  # type: ignore[arg-type]  # a type[Any]
        self._alone = alone
        self._mark = self._mark_of_call = COMMIT_CALLS.mark()
        self._left = _ITEMS_MAX
        self._attributes = self._all_seen(self._of(bolt))
        self._of_classes: list[dict[str, _Seen]] = []

    def before_execute(self) -> None:
        """Take note of what the bolt's classes hold."""
        self._mark_of_call = COMMIT_CALLS.mark()
        self._left = _ITEMS_MAX
        self._of_classes = [self._all_seen(self._data_of(klass)) for klass in self._classes]

    def after_execute(self, who: str) -> None:
        """Raise `NotGathered` where `execute` has changed what the bolt's classes hold; `who` executed."""
        if not self._undisturbed(self._mark_of_call):
            return
        for klass, before in zip(self._classes, self._of_classes, strict=True):
            now = self._data_of(klass)
            if before or now:
                self._compare(before, now, who, f"class attribute {klass.__name__}'s")

    def check(self, who: str) -> None:
        """Raise `NotGathered` where `execute` has changed attributes of the bolt that do not travel."""
        self._alone = self._alone and self._undisturbed(self._mark)
        self._compare(self._attributes, self._of(self._bolt), who, "attribute")

    def _undisturbed(self, mark: int | None) -> bool:
        return mark is not None and mark == COMMIT_CALLS.mark()

    def _compare(self, before: dict[str, _Seen], now: dict[str, Any], who: str, what: str) -> None:
        name = self._changed(before, now)
        if name is not None:
            own = what == "attribute"
            remedy = f"add {name!r} to gathers" if own else "gather in an attribute of the object"
            raise NotGathered(
                f"{who} changes {what} {name!r} in execute(), and gathers only {sorted(self._names)}: the change "
                f"would be lost on the way to the commit; {remedy}, or leave `gathers` out: {_AT_COMMIT}"
            )

    def _changed(self, before: dict[str, _Seen], present: dict[str, Any]) -> str | None:
        for name, value in present.items():
            if name not in before or not self._is_as(before[name], value):
                return name
        return next((name for name in before if name not in present), None) if len(before) > len(present) else None

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
            return value, None if held is None else len(held), None
        self._left -= 1 + len(held)
        return value, len(held), [self._seen(one) for one in _items(held)]

    def _held(self, value: Any) -> Any:
        """Return what holds the items of a value; None where it has none, or nobody here may tell who changed them."""
        kind: type = type(value)
        if not self._alone or value is self._bolt:
            return None
        if kind in _CONTAINERS:
            return value
        return getattr(value, "__dict__", ()) if _is_of(kind, self._package) else None

    def _is_as(self, before: _Seen, now: Any) -> bool:
        value, size, items = before
        if value is not now:
            return False
        held = None if size is None else self._held(now)
        if held is None:
            return True
        if len(held) != size:
            return False
        return items is None or all(map(self._is_as, items, _items(held)))


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
