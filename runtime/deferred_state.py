"""How the state of a deferred bolt travels from the executor that executed it to the driver that finishes it.

Only what the bolt gathered travels, not its class; its conf, context and collector are found again there.
These are pickles in Spark's own channel, of the process that made them; none is ever stored.
"""

from __future__ import annotations

import copyreg
import io
import pickle
from collections.abc import Mapping
from typing import Any

from stormline.runtime.packed import reduced_array
from stormline.runtime.rebinding import bound, rebound


class CannotTravel(Exception):
    """The bolt holds something that cannot be packed: a connection, a file, a lock."""


class _StatePickler(pickle.Pickler):
    """Where the state points back to the bolt, the bolt that receives the state takes its place.

    Of a slice of a record batch its own rows travel, not all that it was cut from.
    """

    def __init__(self, file: io.BytesIO, bolt: Any) -> None:
        super().__init__(file, protocol=5)
        self._bolt = bolt

    def reducer_override(self, obj: Any) -> Any:
        if obj is self._bolt:
            return rebound, ("bolt",)
        return reduced_array(obj) if type(obj).__module__ == "pyarrow.lib" else NotImplemented


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


def pack_state(bolt: Any) -> bytes:
    """Return a bolt's state as bytes; raise `CannotTravel` where it cannot be packed."""
    try:
        reduced = bolt.__reduce_ex__(4)
        if not isinstance(reduced, tuple) or reduced[0] is not copyreg.__newobj__ or len(reduced[1]) != 1:  # type: ignore[attr-defined]
            raise CannotTravel(f"{type(bolt).__name__} has a way of its own to be pickled")
        packed = io.BytesIO()
        _StatePickler(packed, bolt).dump(reduced[2] if len(reduced) > 2 else None)
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
