"""pyarrow, an optional package: imported only where record batches are at work, and missed by name."""

from __future__ import annotations

import importlib.util
from typing import Any

from stormline.topology.errors import MissingExtra


def pyarrow_for(who: str) -> Any:
    """Return the module pyarrow, with its parts `compute` and `ipc`; `who` says who needs it.

    Raises:
        MissingExtra: it is not installed in this process's environment.
    """
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.ipc
    except ImportError:
        raise MissingExtra.of("arrow", who) from None
    return pyarrow


def check_pyarrow(who: str) -> None:
    """Check that pyarrow could be imported, without importing it.

    Raises:
        MissingExtra: it is not installed.
    """
    if importlib.util.find_spec("pyarrow") is None:
        raise MissingExtra.of("arrow", who)


def type_problem(kind: Any) -> str | None:
    """Return why a column of this pyarrow type cannot travel; None where it can.

    Every type travels whose values are Python values that tuples can hold too, since a row bolt may be at the other
    end; but not views, for which pyarrow lacks much.
    """
    types = pyarrow_for("a column").types
    if types.is_dictionary(kind) or types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return type_problem(kind.value_type)
    if types.is_struct(kind):
        return next(filter(None, (type_problem(kind.field(i).type) for i in range(kind.num_fields))), None)
    if types.is_map(kind):
        return type_problem(kind.key_type) or type_problem(kind.item_type)
    if types.is_null(kind) or (types.is_primitive(kind) and not types.is_interval(kind)):
        return None
    if types.is_decimal(kind) or types.is_fixed_size_binary(kind):
        return None
    if any(is_one(kind) for is_one in (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)):
        return None
    return f"type {kind} does not travel"
