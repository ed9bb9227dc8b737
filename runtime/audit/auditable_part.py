"""Which part of a topology can be worked out again: its spout, and what leads to committers that store in maps only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from stormline.runtime.errors import NotAuditable
from stormline.state.maps import SnapshottableMap, StateMap
from stormline.topology.config import COMMIT_PLACEMENT
from stormline.topology.contracts import ICommitterTransactionalSpout
from stormline.topology.graph import graph_of
from stormline.topology.topology import Component, ComponentKind, Topology

STORES_IN = "stores_in"
_REMEDY = (
    f"if all that it does at a commit is to store in maps, let its class name them: {STORES_IN} = (MAP, …), as the "
    "committer of persistent_aggregate has it"
)


@dataclass(frozen=True, slots=True)
class AuditablePart:
    """A topology cut down to what can be worked out again.

    `maps`: by each map the bolts that store in it. `left_out`: why other committers are not worked out, by id.
    """

    topology: Topology
    maps: Mapping[StateMap, tuple[str, ...]]
    left_out: Mapping[str, str]


def auditable_part(topology: Topology) -> AuditablePart:
    """Return what of a topology can be worked out again.

    Raises:
        NotAuditable: nothing can; the message says why, and what would help.
    """
    _check_spout(topology)
    graph = graph_of(topology)
    import networkx as nx

    kept: set[str] = {topology.spout.id}
    maps: dict[StateMap, tuple[str, ...]] = {}
    left_out: dict[str, str] = {}
    undeclared = {bolt.id for bolt in topology.bolts if bolt.committer and not _maps_of(bolt)}
    for bolt in topology.bolts:
        if not bolt.committer:
            continue
        before = nx.ancestors(graph, bolt.id)
        if bolt.id in undeclared:
            left_out[bolt.id] = (
                f"committer {bolt.id!r} ({type(bolt.obj).__name__}) may do more than to store in maps, and would do it "
                f"once more; {_REMEDY}"
            )
        elif before & undeclared:
            left_out[bolt.id] = f"committer {bolt.id!r} comes after {sorted(before & undeclared)}, which is left out"
        else:
            kept |= {bolt.id, *before}
            for map in _maps_of(bolt):
                maps[map] = (*maps.get(map, ()), bolt.id)
    if not maps:
        why = "; ".join(left_out.values()) or "it has no committer"
        raise NotAuditable(f"topology {topology.id!r} stores in no map that can be worked out again: {why}")
    bolts = tuple(_in_the_driver(bolt) for bolt in topology.bolts if bolt.id in kept)
    return AuditablePart(replace(topology, bolts=bolts), maps, left_out)


def _check_spout(topology: Topology) -> None:
    spout = topology.spout
    who = f"topology {topology.id!r} cannot be audited: its spout {spout.id!r} ({type(spout.obj).__name__})"
    if spout.kind is ComponentKind.OPAQUE_SPOUT:
        raise NotAuditable(
            f"{who} is opaque: only what it read when a batch was processed says what that batch was, and of committed "
            "ones that is gone; what a transactional spout has read can be read again"
        )
    if isinstance(spout.obj, ICommitterTransactionalSpout):
        raise NotAuditable(
            f"{who} commits: its source would be told of each transaction once more; let a committer bolt do that, "
            "which an audit leaves out"
        )


def _maps_of(bolt: Component) -> tuple[StateMap, ...]:
    declared: Any = getattr(bolt.obj, STORES_IN, ())
    maps = tuple(one.map if isinstance(one, SnapshottableMap) else one for one in declared)
    wrong = [one for one in maps if not isinstance(one, StateMap)]
    if wrong:
        raise NotAuditable(
            f"committer {bolt.id!r} ({type(bolt.obj).__name__}) has {STORES_IN} = {declared!r}, expected maps of "
            "stormline.state"
        )
    return maps


def _in_the_driver(bolt: Component) -> Component:
    return replace(bolt, config={key: value for key, value in bolt.config.items() if key != COMMIT_PLACEMENT})
