"""compile_topology: from what was declared to what runs where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stormline.topology.config import (
    COMMIT_PLACEMENT,
    MAX_SPOUT_PENDING,
    MAX_TASK_PARALLELISM,
    TASKS,
    check_config,
    setting,
)
from stormline.topology.contracts import ICommitterTransactionalSpout, ISpout
from stormline.topology.errors import InvalidComponent, InvalidConfig
from stormline.topology.gathering import executes_at_commit
from stormline.topology.graph import check_graph, deferred_bolts, graph_of
from stormline.topology.grouping import GroupingKind
from stormline.topology.plan import Edge, Placement, Plan, PlannedComponent, Stage, Transfer
from stormline.topology.shipping import check_sent, check_shippable_config
from stormline.topology.topology import Component, Topology

if TYPE_CHECKING:
    pass


def compile_topology(topology: Topology, config: Mapping[str, Any] | None = None) -> Plan:
    """Split the graph into phases and stages.

    A bolt is deferred (finishes in the commit phase) when it is a committer or can be reached from one. It executes in
    the commit phase too, unless it says what it gathers. What a deferred bolt emits is delivered in the commit phase,
    so only edges between other components, and to those that gather, cut the processing phase into stages: an edge
    is a plain call where source and target tasks always share a Spark task, else an exchange.

    Args:
        topology (Topology): what `build_topology` returned.
        config (Mapping[str, Any] | None): the topology's configuration; None: all as by default.

    Returns:
        what runs where, as pure data; nothing has been started.

    Raises:
        InvalidComponent: `topology` is no Topology.
        NotShippable: a bolt that commits on the executors cannot be sent there.
        DeclarationError: the graph or the configuration is wrong.
    """
    if not isinstance(topology, Topology):
        raise InvalidComponent(
            f"compile_topology got a {type(topology).__name__}, expected what build_topology() returns"
        )
    config = {} if config is None else config
    check_config(config, f"configuration of topology {topology.id!r}")
    config = dict(config)
    if topology.spout.config.get(MAX_SPOUT_PENDING) is not None:  # as in Storm, where the spout's wins
        config[MAX_SPOUT_PENDING] = topology.spout.config[MAX_SPOUT_PENDING]
    check_shippable_config(config, f"configuration of topology {topology.id!r}")
    check_graph(topology)
    import networkx as nx  # here, since it takes half as long to import as all the rest of stormline

    graph = graph_of(topology)
    order = list(nx.lexicographical_topological_sort(graph, key=list(topology.components).index))
    tasks = _assign_tasks(topology, config)
    deferred = deferred_bolts(topology, graph)
    stage_of = _processing_stages(topology, order, tasks, deferred)
    commit_stage_of = _commit_stages(topology, order, deferred)
    components = {
        name: PlannedComponent(
            component,
            tasks[name],
            stage_of.get(name),
            commit_stage_of.get(name),
            _commit_placement(component, config, name in deferred),
        )
        for name, component in topology.components.items()
    }
    for planned in components.values():
        if planned.commit_placement is Placement.EXECUTORS:
            check_sent(planned.component)
    return Plan(
        topology=topology,
        config=config,
        components=components,
        edges=_edges(topology, tasks, deferred, stage_of),
        stages=_stages(topology, order, stage_of),
        commit_stages=tuple(
            tuple(name for name in order if commit_stage_of.get(name) == i)
            for i in range(max(commit_stage_of.values(), default=-1) + 1)
        ),
    )


def emits_on_executors(spout: Component) -> bool:
    """Return whether a spout's emitters run on the executors: where its author says so."""
    assert isinstance(spout.obj, ISpout)
    return spout.obj.emits_on_executors


def _count_tasks(component: Component, config: Mapping[str, Any]) -> int:
    own = component.config.get(TASKS) is not None
    count: int = component.num_tasks if own else config.get(TASKS) or component.num_tasks
    return min(count, component.config.get(MAX_TASK_PARALLELISM, config.get(MAX_TASK_PARALLELISM)) or count)


def _assign_tasks(topology: Topology, config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    tasks: dict[str, tuple[int, ...]] = {}
    next_task = 1
    for name, component in topology.components.items():
        count = _count_tasks(component, config)
        tasks[name] = tuple(range(next_task, next_task + count))
        next_task += count
    return tasks


def _can_be_local(
    topology: Topology, source: str, target: str, kind: GroupingKind, tasks: Mapping[str, tuple[int, ...]]
) -> bool:
    # Task i of every component runs in Spark task i mod n, so equal indexes meet whatever n is.
    if source == topology.spout.id and not emits_on_executors(topology.spout):
        return False
    sources, targets = len(tasks[source]), len(tasks[target])
    if kind is GroupingKind.NONE:  # the user does not care: as evenly as the source's own tasks are loaded
        return sources == targets
    return sources == targets == 1 or (kind is GroupingKind.LOCAL_OR_SHUFFLE and targets >= sources)


def _processing_stages(
    topology: Topology, order: list[str], tasks: Mapping[str, tuple[int, ...]], deferred: set[str]
) -> dict[str, int]:
    stage_of = {topology.spout.id: 0}
    components = topology.components
    for name in order[1:]:
        stages = [
            stage_of[source.component] + (not _can_be_local(topology, source.component, name, grouping.kind, tasks))
            for source, grouping in components[name].inputs.items()
            if source.component not in deferred and not executes_at_commit(components[name].obj, name in deferred)
        ]
        if stages:
            stage_of[name] = max(stages)
    return stage_of


def _commit_stages(topology: Topology, order: list[str], deferred: set[str]) -> dict[str, int]:
    stage_of: dict[str, int] = {}
    components = topology.components
    for name in order:
        if name in deferred:
            sources = (source.component for source in components[name].inputs)
            stage_of[name] = max((stage_of[s] + 1 for s in sources if s in stage_of), default=0)
    return stage_of


def _commit_placement(component: Component, config: Mapping[str, Any], deferred: bool) -> Placement | None:
    """Return where a deferred component finishes; its own key wins over the topology's."""
    own = component.config.get(COMMIT_PLACEMENT)
    if deferred:
        return Placement(setting(config, COMMIT_PLACEMENT) if own is None else own)
    if own is not None:
        raise InvalidConfig(
            f"{component.kind.value} {component.id!r} sets {COMMIT_PLACEMENT} to {own!r}, and "
            + _why_not_placed(component)
            + "; leave the key out here, or set it for the topology"
        )
    return None


def _why_not_placed(component: Component) -> str:
    if isinstance(component.obj, ICommitterTransactionalSpout):
        return "the emitters of a committer spout commit on the driver, wherever the bolts do"
    return "finishes no batch in the commit phase: it is no committer, nor downstream of one"


def _edges(
    topology: Topology, tasks: Mapping[str, tuple[int, ...]], deferred: set[str], stage_of: Mapping[str, int]
) -> tuple[Edge, ...]:
    edges: list[Edge] = []
    for bolt in topology.bolts:
        for source, grouping in bolt.inputs.items():
            if source.component in deferred or bolt.id not in stage_of:
                transfer = Transfer.COMMIT
            elif stage_of[source.component] == stage_of[bolt.id]:
                transfer = Transfer.LOCAL
            else:
                transfer = Transfer.EXCHANGE
            edges.append(Edge(len(edges), source.component, source.stream, bolt.id, grouping, transfer))
    return tuple(edges)


def _stages(topology: Topology, order: list[str], stage_of: Mapping[str, int]) -> tuple[Stage, ...]:
    on_driver = not emits_on_executors(topology.spout)
    return tuple(
        Stage(
            index=i,
            placement=Placement.DRIVER if on_driver and i == 0 else Placement.EXECUTORS,
            components=tuple(name for name in order if stage_of.get(name) == i),
        )
        for i in range(max(stage_of.values()) + 1)
    )
