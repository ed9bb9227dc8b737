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
import types
import uuid
from collections.abc import Sequence
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


AT_COMMIT = "the bolt is then executed at the commit, in the driver"
_PLAIN_DATA = (
    "what travels to the commit is plain data: numbers, text, bytes, dates, containers of them, arrays, classes "
    "registered by register_serialization()"
)


class _NotPlain(Exception):
    """Names what is no plain data, and what to do in its place where that is known."""

    def __init__(self, what: str, instead: str = _PLAIN_DATA) -> None:
        super().__init__(what)
        self.instead = instead


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
        if isinstance(obj, types.FunctionType) and "<" in obj.__qualname__:  # <lambda>, or <locals> of another
            raise _NotPlain(
                f"{obj.__qualname__}, a function that nothing can find by its name",
                "as what a defaultdict makes of a missing key, or wherever it stands, take int, list or a function of "
                "the module",
            )
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
                plain = error if isinstance(error, _NotPlain) else _NotPlain(f"what cannot travel ({error})")
                raise NotGathered(
                    f"{who} gathers {name!r}, which holds {plain}; {plain.instead}. Make {name!r} of these, or leave "
                    f"`gathers` out: {AT_COMMIT}"
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
