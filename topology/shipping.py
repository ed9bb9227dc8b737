"""Whether components can be sent to the executors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stormline.topology.errors import NotShippable
from stormline.topology.topology import Topology


def check_shippable(topology: Topology) -> None:
    """Raise `NotShippable`, naming component and attribute, where one cannot be pickled."""
    for component in topology.components.values():
        for source, grouping in component.inputs.items():
            if grouping.custom is not None:
                _check(grouping.custom, f"the custom grouping of {component.id!r} on {source}")
        who = f"{component.kind.value} {component.id!r}"
        _check(component.obj, who)
        check_shippable_config(component.config, f"configuration of {who}")


def check_shippable_config(config: Mapping[str, Any], where: str) -> None:
    """Raise `NotShippable`, naming the key, where a value of a configuration cannot be pickled."""
    if _pickling_error(dict(config)) is None:
        return
    for key, value in config.items():
        cause = _pickling_error(value)
        if cause is not None:
            raise NotShippable(
                f"{where} cannot be sent to the executors: {key!r} is a {_kind(value)}, which cannot be pickled "
                f"({cause}); put into the configuration what it is made from, and make it in prepare()"
            )


def _check(obj: Any, who: str) -> None:
    error = _pickling_error(obj)
    if error is None:
        return
    for name, value in _attributes(obj):
        cause = _pickling_error(value)
        if cause is not None:
            raise NotShippable(
                f"{who} ({type(obj).__name__}) cannot be sent to the executors: attribute {name!r} is a "
                f"{_kind(value)}, which cannot be pickled ({cause}); "
                "open it in prepare(), not in __init__()"
            )
    raise NotShippable(f"{who} ({type(obj).__name__}) cannot be sent to the executors: {error}")


def _attributes(obj: Any) -> Iterator[tuple[str, Any]]:
    yield from getattr(obj, "__dict__", {}).items()
    for cls in type(obj).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(obj, name):
                yield name, getattr(obj, name)


def _kind(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _pickling_error(obj: Any) -> Exception | None:
    import cloudpickle  # here, since only building a topology needs it

    try:
        cloudpickle.dumps(obj)
    except Exception as error:
        return error
    return None
