"""The graph of a topology, as networkx sees it, and the checks of its shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stormline.topology.errors import (
    CyclicTopology,
    InvalidGrouping,
    UnknownComponent,
    UnknownField,
    UnknownStream,
    UnreachableBolt,
    did_you_mean,
)
from stormline.topology.grouping import GlobalStreamId, Grouping, GroupingKind
from stormline.topology.topology import Component, Topology

if TYPE_CHECKING:
    import networkx as nx


def graph_of(topology: Topology) -> nx.MultiDiGraph[str]:
    """Return the graph: a node a component, an edge a subscription (attributes `stream`, `grouping`)."""
    import networkx as nx  # here, since it takes longer to import than all the rest of topology/

    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    graph.add_nodes_from(topology.components)
    for bolt in topology.bolts:
        for source, grouping in bolt.inputs.items():
            graph.add_edge(source.component, bolt.id, key=source.stream, stream=source.stream, grouping=grouping)
    return graph


def deferred_bolts(topology: Topology, graph: nx.MultiDiGraph[str]) -> set[str]:
    """Return the bolts that finish in the commit phase: committers, and what can be reached from one."""
    import networkx as nx

    committers = {bolt.id for bolt in topology.bolts if bolt.committer}
    return committers.union(*(nx.descendants(graph, committer) for committer in committers))


def check_graph(topology: Topology) -> None:
    """Check that every source exists, that there is no cycle, and that the spout reaches every bolt.

    Raises:
        UnknownComponent, UnknownStream, UnknownField, InvalidGrouping, CyclicTopology, UnreachableBolt.
    """
    import networkx as nx

    components = topology.components
    for bolt in topology.bolts:
        for source, grouping in bolt.inputs.items():
            _check_subscription(bolt, source, grouping, components)
    graph = graph_of(topology)
    try:
        cycle = nx.find_cycle(graph)
    except nx.NetworkXNoCycle:
        pass
    else:
        path = " → ".join([cycle[0][0], *(edge[1] for edge in cycle)])
        raise CyclicTopology(
            f"topology {topology.id!r} has a cycle: {path}; a batch must come to an end, "
            "so remove one of these groupings"
        )
    unreached = [bolt.id for bolt in topology.bolts if not nx.has_path(graph, topology.spout.id, bolt.id)]
    if unreached:
        raise UnreachableBolt(
            f"topology {topology.id!r}: no tuple of spout {topology.spout.id!r} can reach bolt(s) {unreached}; "
            "give each a grouping on the spout or on a bolt that it reaches"
        )


def _check_subscription(
    bolt: Component, source: GlobalStreamId, grouping: Grouping, components: dict[str, Component]
) -> None:
    who = f"bolt {bolt.id!r}"
    if source.component not in components:
        raise UnknownComponent(
            f"{who} subscribes to component {source.component!r}, which does not exist; "
            f"there are {list(components)}{did_you_mean(source.component, components)}"
        )
    streams = components[source.component].streams
    if source.stream not in streams:
        raise UnknownStream(
            f"{who} subscribes to stream {source.stream!r} of {source.component!r}, which declares "
            f"{list(streams)}{did_you_mean(source.stream, streams)}"
        )
    stream = streams[source.stream]
    for name in grouping.fields:
        if name not in stream.fields:
            raise UnknownField(
                f"{who} groups on field {name!r}; stream {source.stream!r} of {source.component!r} declares "
                f"{stream.fields.to_list()}{did_you_mean(name, stream.fields)}"
            )
    for name in getattr(bolt.obj, "reads_fields", ()):
        if name not in stream.fields:
            raise UnknownField(
                f"{who} reads field {name!r}; stream {source.stream!r} of {source.component!r} declares "
                f"{stream.fields.to_list()}{did_you_mean(name, stream.fields)}"
            )
    if stream.direct != (grouping.kind is GroupingKind.DIRECT):
        remedy = "use direct_grouping" if stream.direct else "declare the stream with direct=True"
        raise InvalidGrouping(
            f"{who} has a {grouping.kind.value} grouping on stream {source.stream!r} of {source.component!r}, "
            f"which is {'direct' if stream.direct else 'not direct'}; {remedy}"
        )
