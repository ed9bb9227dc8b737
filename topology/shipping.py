"""Whether components can be sent to the executors, or copied where they live in the driver."""

from __future__ import annotations

import copy
import types
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from stormline.topology.contracts import ISpout
from stormline.topology.culprit import Culprit, Way, culprit_in
from stormline.topology.errors import NotShippable
from stormline.topology.gathering import executes_at_commit
from stormline.topology.graph import deferred_bolts, graph_of
from stormline.topology.process_bound import ProcessBound
from stormline.topology.topology import Component, Topology
from stormline.topology.two_phase_bolt import sink_of

IN_BOLT = "prepare()"
IN_SINK = "open()"
IN_SPOUT = "get_emitter() or get_coordinator(), or in the __init__() of what they return"

_NOT_IN = {"class attribute": ", not in the class", "method": ", not outside of it"}


def check_shippable(topology: Topology) -> None:
    """Raise `NotShippable`, naming component and attribute, where one cannot be pickled.

    What lives in the driver is sent nowhere, so a bolt there may use whatever its module holds; but it is copied for
    each batch. Where commits are placed on the executors, `check_sent` looks at it when the topology is compiled.
    """
    deferred = deferred_bolts(topology, graph_of(topology))
    for component in topology.components.values():
        for source, grouping in component.inputs.items():
            if grouping.custom is not None:
                _check(grouping.custom, f"the custom grouping of {component.id!r} on {source}", IN_BOLT, _SENT)
        if executes_at_commit(component.obj, component.id in deferred):
            _check(component.obj, _who(component), IN_BOLT, _COPIED)
        elif not isinstance(component.obj, ISpout) or component.obj.emits_on_executors:
            check_sent(component)
        check_shippable_config(component.config, f"configuration of {_who(component)}", _where(component))


def check_sent(component: Component) -> None:
    """Raise `NotShippable` where a component that runs on the executors cannot be pickled."""
    sink = getattr(sink_of(component), "sink", None)
    if sink is not None:
        _check(sink, f"the sink of {_who(component)}", IN_SINK, _SENT)
    _check(component.obj, _who(component), _where(component), _SENT)


def check_shippable_config(config: Mapping[str, Any], whose: str, where: str = IN_BOLT) -> None:
    """Raise `NotShippable`, naming the key, where a value of a configuration cannot be pickled.

    Args:
        where: the calls that can make there what cannot be sent.
    """
    plain = dict(config)
    error = _SENT.error(plain)
    if error is None:
        return
    culprit = culprit_in(plain, _SENT.error)
    if culprit is None:
        raise NotShippable(f"{whose} cannot be sent to the executors: {error}")
    raise NotShippable(
        f"{whose} cannot be sent to the executors: {_found(culprit, _SENT)}; put into the configuration what it is "
        f"made from, and make it in {where}"
    )


def _who(component: Component) -> str:
    return f"{component.kind.value} {component.id!r}"


def _where(component: Component) -> str:
    return IN_SPOUT if isinstance(component.obj, ISpout) else IN_BOLT


def _check(obj: Any, who: str, where: str, way: _Way) -> None:
    error = way.error(obj)
    if error is None:
        return
    who = f"{who} ({type(obj).__name__}) cannot be {way.what}"
    culprit = culprit_in(obj, way.error)
    if culprit is None:
        raise NotShippable(f"{who}: {error}")
    raise NotShippable(f"{who}: {_holder(culprit, obj)} {_found(culprit, way)}; {_remedy(culprit, where, obj)}")


def _holder(culprit: Culprit, obj: Any) -> str:
    way, name = culprit.steps[0]
    if way is Way.CLASS_ATTRIBUTE and isinstance(getattr(type(obj), name, None), types.FunctionType):
        return "method"
    return way.value


def _found(culprit: Culprit, way: _Way) -> str:
    """Say "'client' holds a _thread.lock in client._lock, which cannot be pickled (…)"."""
    found = f"is a {culprit.kind}" if len(culprit.steps) == 1 else f"holds a {culprit.kind} in {culprit.path}"
    return f"{culprit.name!r} {found}, which cannot be {way.how} ({culprit.error})"


def _remedy(culprit: Culprit, where: str, obj: Any) -> str:
    bound = ProcessBound.of_unpicklable(type(culprit.value))
    holder = _holder(culprit, obj)
    declared = ", not in the spout's __init__()" if where == IN_SPOUT else ", not in __init__()"
    here = f"in {where}{_NOT_IN.get(holder, declared)}"
    if len(culprit.steps) == 1 or holder == "method":
        remedy = f"{bound.verb if bound else 'make'} it {here}"
    else:
        remedy = f"make {culprit.name!r} {here}"
    # Within an object of somebody else's class a lock is that one's business.
    own = all(step not in (Way.ATTRIBUTE, Way.CLASS_ATTRIBUTE) for step, _ in culprit.steps[1:])
    return f"{remedy}; {bound.hint}" if bound and own else remedy


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
