"""How the state of a deferred bolt travels from the executor that executed it to the driver that finishes it.

Only what the bolt gathered travels, not its class; its conf, context and collector are found again there.
These are pickles in Spark's own channel, of the process that made them; none is ever stored.
"""

from __future__ import annotations

import copyreg
import io
import pickle
from collections.abc import Mapping
from functools import lru_cache
from types import FunctionType
from typing import Any

from stormline.runtime.module_objects import OBJECTS_MAX, changing, held_elsewhere, is_users, objects_of
from stormline.runtime.packed import reduced_array
from stormline.runtime.rebinding import CannotTravel, bound, rebound

__all__ = ["CannotTravel", "check_all_travels", "pack_state", "unpack_state"]


class _StatePickler(pickle.Pickler):
    """Where the state points back to the bolt, the bolt that receives the state takes its place.

    Of a slice of a record batch its own rows travel, not all that it was cut from.
    """

    def __init__(self, file: io.BytesIO, bolt: Any, as_classes_say: bool) -> None:
        super().__init__(file, protocol=5)
        self._bolt = bolt
        self._as_classes_say = as_classes_say

    def reducer_override(self, obj: Any) -> Any:
        if obj is self._bolt:
            return rebound, ("bolt",)
        kind: type = type(obj)
        if kind.__module__ == "pyarrow.lib":
            return reduced_array(obj)
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


def _says_what_is_pickled(kind: type) -> bool:
    plain = getattr(object, "__getstate__", None)  # from Python 3.11 on
    return getattr(kind, "__getstate__", None) is not plain


def check_all_travels(bolt: Any) -> None:
    """Raise `CannotTravel` where a bolt's state may be less than what it has gathered.

    A class says what is pickled of it so that it can be declared and sent to where it is prepared; connections are
    left out, say. That tells nothing of what it gathers afterwards.
    """
    kind = type(bolt)
    if hasattr(kind, "__setstate__") or _says_what_is_pickled(kind):
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
        shared = _shared(bolt, state, objects_max=None if as_classes_say else OBJECTS_MAX)
        if shared:
            for attributes in state if isinstance(state, tuple) else (state,):
                for name, value in attributes.items() if isinstance(attributes, dict) else ():
                    if id(value) in shared:
                        raise _not_to_be_copied(f"its {name!r} is a", value)
        packed = io.BytesIO()
        pickler = _StatePickler(packed, bolt, as_classes_say)
        pickler.dump(state)
        for at in shared.keys() & pickler.memo.copy().keys() if shared else ():
            raise _not_to_be_copied("it holds a", shared[at])
        return packed.getvalue()
    except CannotTravel:
        raise
    except Exception as error:
        raise CannotTravel(f"{type(error).__name__}: {error}") from error


def _not_to_be_copied(what: str, value: Any) -> CannotTravel:
    return CannotTravel(
        f"{what} {type(value).__name__} of its module or class, where a copy would be changed instead of it"
    )


def _shared(bolt: Any, state: Any, objects_max: int | None) -> dict[int, Any]:
    """Return by id what can be changed, is held by a bolt or its state, and is held by the bolt's modules too.

    Raises:
        CannotTravel: the modules hold more than `objects_max` objects.
    """
    own = getattr(bolt, "__dict__", None)
    made = state if isinstance(state, tuple) and not _says_what_is_pickled(type(bolt)) else (state,)  # with slots
    suspects = changing(held_elsewhere((bolt, *(part for part in made if part is not None and part is not own))))
    if not suspects:
        return {}
    theirs = objects_of(type(bolt), objects_max)
    return {at: obj for at, obj in suspects.items() if at in theirs}


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
