"""Whether components can be sent to the executors, or copied where they live in the driver."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from stormline.topology.contracts import ISpout
from stormline.topology.errors import NotShippable
from stormline.topology.gathering import executes_at_commit
from stormline.topology.graph import deferred_bolts, graph_of
from stormline.topology.topology import Component, Topology


def check_shippable(topology: Topology) -> None:
    """Raise `NotShippable`, naming component and attribute, where one cannot be pickled.

    What lives in the driver is sent nowhere, so a bolt there may use whatever its module holds; but it is copied for
    each batch. Where commits are placed on the executors, `check_sent` looks at it when the topology is compiled.
    """
    deferred = deferred_bolts(topology, graph_of(topology))
    for component in topology.components.values():
        for source, grouping in component.inputs.items():
            if grouping.custom is not None:
                _check(grouping.custom, f"the custom grouping of {component.id!r} on {source}", _SENT)
        if executes_at_commit(component.obj, component.id in deferred):
            _check(component.obj, _who(component), _COPIED)
        elif not isinstance(component.obj, ISpout) or component.obj.emits_on_executors:
            check_sent(component)
        check_shippable_config(component.config, f"configuration of {_who(component)}")


def check_sent(component: Component) -> None:
    """Raise `NotShippable` where a component that runs on the executors cannot be pickled."""
    _check(component.obj, _who(component), _SENT)


def _who(component: Component) -> str:
    return f"{component.kind.value} {component.id!r}"


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


def _check(obj: Any, who: str, way: _Way) -> None:
    error = way.error(obj)
    if error is None:
        return
    for name, value in _attributes(obj):
        cause = way.error(value)
        if cause is not None:
            raise NotShippable(
                f"{who} ({type(obj).__name__}) cannot be {way.what}: attribute {name!r} is a "
                f"{_kind(value)}, which cannot be {way.how} ({cause}); "
                "open it in prepare(), not in __init__()"
            )
    raise NotShippable(f"{who} ({type(obj).__name__}) cannot be {way.what}: {error}")


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


def _copying_error(obj: Any) -> Exception | None:
    try:
        copy.deepcopy(obj)
    except Exception as error:
        return error
    return None


class _Way(NamedTuple):
    """How an object gets to where it is called."""

    error: Callable[[Any], Exception | None]
    what: str
    how: str


_SENT = _Way(_pickling_error, "sent to the executors", "pickled")
_COPIED = _Way(_copying_error, "copied for each batch", "copied")
