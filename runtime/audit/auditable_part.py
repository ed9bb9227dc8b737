"""Which part of a topology can be worked out again: its spout, and what leads to committers that only store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from stormline.runtime.errors import NotAuditable
from stormline.state.store import Store
from stormline.topology.config import COMMIT_PLACEMENT
from stormline.topology.contracts import ICommitterTransactionalSpout
from stormline.topology.graph import graph_of
from stormline.topology.topology import Component, ComponentKind, Topology

EFFECTS_IN = "effects_in"
_REMEDY = (
    f"if all its effects are what it stores in maps of one store, let its class say so: {EFFECTS_IN} = STORE, as the "
    "committer of persistent_aggregate does"
)


@dataclass(frozen=True, slots=True)
class AuditablePart:
    """A topology cut down to what can be worked out again.

    `stores`: by each store the committers that store there. `left_out`: why others are not worked out, by id.
    """

    topology: Topology
    stores: Mapping[Store, tuple[str, ...]]
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
    stores: dict[Store, tuple[str, ...]] = {}
    left_out: dict[str, str] = {}
    undeclared = {bolt.id for bolt in topology.bolts if bolt.committer and _store_of(bolt) is None}
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
            store = _store_of(bolt)
            assert store is not None
            stores[store] = (*stores.get(store, ()), bolt.id)
    if not stores:
        why = "; ".join(left_out.values()) or "it has no committer"
        raise NotAuditable(f"topology {topology.id!r} stores in no map that can be worked out again: {why}")
    bolts = tuple(_in_the_driver(bolt) for bolt in topology.bolts if bolt.id in kept)
    return AuditablePart(replace(topology, bolts=bolts), stores, left_out)


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


def _store_of(bolt: Component) -> Store | None:
    """Return where all effects of a committer are, if it says so, and that is a store."""
    declared: Any = getattr(bolt.obj, EFFECTS_IN, None)
    return declared if isinstance(declared, Store) else None


def _in_the_driver(bolt: Component) -> Component:
    return replace(bolt, config={key: value for key, value in bolt.config.items() if key != COMMIT_PLACEMENT})
