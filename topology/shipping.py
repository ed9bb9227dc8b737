"""Whether components can be sent to the executors."""

from __future__ import annotations

from typing import Any

import cloudpickle

from stormline.topology.errors import NotShippable
from stormline.topology.topology import Topology


def check_shippable(topology: Topology) -> None:
    """Raise `NotShippable`, naming component and attribute, where one cannot be pickled."""
    for component in topology.components.values():
        for source, grouping in component.inputs.items():
            if grouping.custom is not None:
                _check(grouping.custom, f"the custom grouping of {component.id!r} on {source}")
        _check(component.obj, f"{component.kind.value} {component.id!r}")


def _check(obj: Any, who: str) -> None:
    error = _pickling_error(obj)
    if error is None:
        return
    for name, value in getattr(obj, "__dict__", {}).items():
        cause = _pickling_error(value)
        if cause is not None:
            raise NotShippable(
                f"{who} ({type(obj).__name__}) cannot be sent to the executors: attribute {name!r} is a "
                f"{type(value).__module__}.{type(value).__qualname__}, which cannot be pickled ({cause}); "
                "open it in prepare(), not in __init__()"
            )
    raise NotShippable(f"{who} ({type(obj).__name__}) cannot be sent to the executors: {error}")


def _pickling_error(obj: Any) -> Exception | None:
    try:
        cloudpickle.dumps(obj)
    except Exception as error:
        return error
    return None
