"""How the state of a deferred bolt travels from the executor that executed it to the driver that finishes it.

Only what the bolt gathered travels, not its class; its conf, context and collector are found again there.
These are pickles in Spark's own channel, of the process that made them; none is ever stored.
"""

from __future__ import annotations

import copyreg
import io
import pickle
from collections.abc import Mapping, Set
from functools import lru_cache
from types import FunctionType
from typing import Any

from stormline.runtime.module_objects import is_told_by_value, is_users, objects_of
from stormline.runtime.packed import reduced_array
from stormline.runtime.rebinding import bound, rebound


class CannotTravel(Exception):
    """The bolt holds something that cannot be packed, such as a connection, or of which a copy is not enough."""


class _StatePickler(pickle.Pickler):
    """Where the state points back to the bolt, the bolt that receives the state takes its place.

    Of a slice of a record batch its own rows travel, not all that it was cut from.
    """

    def __init__(self, file: io.BytesIO, bolt: Any, as_classes_say: bool) -> None:
        super().__init__(file, protocol=5)
        self._bolt = bolt
        self._as_classes_say = as_classes_say
        self._module_objects: Set[int] | None = None

    def check(self, what: str, value: Any) -> None:
        """Raise `CannotTravel` for an object of a module, of which a copy would be changed in its stead."""
        if is_told_by_value(value):
            return
        if self._module_objects is None:
            self._module_objects = objects_of(type(self._bolt))
        if id(value) in self._module_objects:
            raise CannotTravel(f"{what} of its module or class, where a copy would be changed instead of it")

    def reducer_override(self, obj: Any) -> Any:
        if obj is self._bolt:
            return rebound, ("bolt",)
        kind: type = type(obj)
        if kind.__module__ == "pyarrow.lib":
            return reduced_array(obj)
        self.check(f"it holds a {kind.__name__}", obj)
        if not self._as_classes_say and (method := _own_pickling(kind)) is not None:
            raise CannotTravel(f"it holds a {kind.__name__} with a {method} of its own, which may leave things out")
        return NotImplemented


_PICKLING = ("__getstate__", "__setstate__", "__reduce__", "__reduce_ex__")


@lru_cache(maxsize=1024)
def _own_pickling(kind: type) -> str | None:
    """Return the method by which a user's class says how it is pickled, if one does."""
    for klass in kind.__mro__:
        for name in _PICKLING:
            method = vars(klass).get(name)
            if isinstance(method, FunctionType) and is_users(method.__module__):
                return name
    return None


def check_all_travels(bolt: Any) -> None:
    """Raise `CannotTravel` where a bolt's state may be less than what it has gathered.

    A class says what is pickled of it so that it can be declared and sent to where it is prepared; connections are
    left out, say. That tells nothing of what it gathers afterwards.
    """
    kind = type(bolt)
    plain = getattr(object, "__getstate__", None)  # from Python 3.11 on
    if hasattr(kind, "__setstate__") or getattr(kind, "__getstate__", None) is not plain:
        raise CannotTravel(f"{kind.__name__} has a __getstate__ or __setstate__ of its own, which may leave things out")
    if isinstance(bolt, (list, dict)):
        raise CannotTravel(f"{kind.__name__} is a list or dict, whose items are not in its attributes")


def pack_state(bolt: Any, as_classes_say: bool = False) -> bytes:
    """Return the state of a bolt, or of an emitter, as bytes.

    Args:
        as_classes_say: leave out what classes with a `__getstate__` of their own leave out.

    Raises:
        CannotTravel: it cannot be packed, or a copy may be less than what was gathered, or not the object meant.
    """
    try:
        reduced = bolt.__reduce_ex__(4)
        if not isinstance(reduced, tuple) or reduced[0] is not copyreg.__newobj__ or len(reduced[1]) != 1:  # type: ignore[attr-defined]
            raise CannotTravel(f"{type(bolt).__name__} has a way of its own to be pickled")
        state = reduced[2] if len(reduced) > 2 else None
        packed = io.BytesIO()
        pickler = _StatePickler(packed, bolt, as_classes_say)
        for attributes in state if isinstance(state, tuple) else (state,):
            for name, value in attributes.items() if isinstance(attributes, dict) else ():
                pickler.check(f"its {name!r} is a {type(value).__name__}", value)
        pickler.dump(state)
        return packed.getvalue()
    except CannotTravel:
        raise
    except Exception as error:
        raise CannotTravel(f"{type(error).__name__}: {error}") from error


def unpack_state(bolt: Any, packed: bytes, bindings: Mapping[str, Any]) -> None:
    """Give `bolt`, a fresh copy, the state that `pack_state` packed; raise `CannotTravel` where it does not fit."""
    try:
        with bound({**bindings, "bolt": bolt}):
            state = pickle.loads(packed)
        if hasattr(bolt, "__setstate__"):
            bolt.__setstate__(state)
            return
        attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
        if hasattr(bolt, "__dict__"):
            bolt.__dict__.clear()
            bolt.__dict__.update(attributes or {})
        for name, value in (slots or {}).items():
            setattr(bolt, name, value)
    except Exception as error:
        raise CannotTravel(f"{type(error).__name__}: {error}") from error
