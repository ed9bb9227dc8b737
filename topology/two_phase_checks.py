"""Where a bolt that writes into a two-phase sink may stand: checked when the topology is built."""

from __future__ import annotations

from stormline.topology.errors import InvalidComponent
from stormline.topology.graph import deferred_bolts, graph_of
from stormline.topology.topology import Component, Topology
from stormline.topology.two_phase_bolt import sink_of


def check_two_phase(topology: Topology) -> None:
    """Check that such a bolt is a leaf of the processing phase: it emits nothing, and stands behind no committer.

    Raises:
        InvalidComponent: it is not, or its own class keeps the engine from its turn.
    """
    bolts = [component for component in topology.bolts if sink_of(component) is not None]
    if not bolts:
        return
    deferred = deferred_bolts(topology, graph_of(topology))
    for component in bolts:
        who = f"bolt {component.id!r} ({type(component.obj).__name__}) writes into a two-phase sink and"
        if component.streams:
            raise InvalidComponent(
                f"{who} declares the streams {list(component.streams)}; it emits nothing, since a batch that was "
                "decided is not written again when it is replayed: let what would subscribe to it subscribe to what "
                "it subscribes to"
            )
        if component.id in deferred:
            raise InvalidComponent(
                f"{who} stands behind {_committer_before(topology, component)!r}, whose tuples come in the commit "
                "phase; it writes in the processing phase. Let it subscribe to what comes before that committer, or "
                "let a committer write these rows, by a store in which they become visible with its own "
                "(docs/state.md)"
            )
        if not hasattr(component.obj, "sink"):
            raise InvalidComponent(f"{who} has no sink; let its __init__() call super().__init__(sink)")


def _committer_before(topology: Topology, component: Component) -> str:
    import networkx as nx

    before = nx.ancestors(graph_of(topology), component.id)
    return next(bolt.id for bolt in topology.bolts if bolt.committer and bolt.id in before)
