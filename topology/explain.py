"""explain: a compiled plan as text that a person can read, and a test can compare."""

from __future__ import annotations

from collections.abc import Iterator

import networkx as nx

from stormline.topology.commit_groups import commit_groups
from stormline.topology.config import MAX_SPOUT_PENDING, setting
from stormline.topology.contracts import ICommitterTransactionalSpout
from stormline.topology.gathering import gathered_by
from stormline.topology.graph import graph_of
from stormline.topology.grouping import GlobalStreamId, GroupingKind
from stormline.topology.plan import Edge, Placement, Plan, PlannedComponent, Transfer
from stormline.topology.topology import ComponentKind
from stormline.topology.two_phase_bolt import decides, sink_of
from stormline.topology.two_phase_commit import Semantic

Row = tuple[str, ...]

PROMISES = {
    Semantic.EXACTLY_ONCE: "executes and pre-commits; exactly once, visible at the commit",
    Semantic.AT_LEAST_ONCE: "executes and writes; at least once, visible at once: a replay writes again",
    Semantic.NONE: "executes and writes; nothing is promised, visible at once: what fails is logged",
}
"""What bolts that write into two-phase sinks do, and what becomes of it."""


def explain(plan: Plan) -> str:
    """Return what runs where and how tuples move, as plain text; the same plan always gives the same text."""
    pending = setting(plan.config, MAX_SPOUT_PENDING)
    lines = [f"topology {plan.topology_id}", ""]
    lines += [f"Processing phase: up to {pending} transactions at once"]
    for stage in plan.stages:
        where = "in the driver process" if stage.placement is Placement.DRIVER else "on the executors"
        lines += [f"  stage {stage.index}, {where}", *_table(_rows(plan, stage.components), 4)]
    lines += ["", f"Commit phase: one transaction at a time, in txid order, {_commit_place(plan)}"]
    sinks = [planned for planned in plan.components.values() if decides(planned.component)]
    if plan.commit_stages or commits_its_emitters(plan) or sinks:
        groups = commit_groups(plan)
        many = f"up to {groups.size_max} that wait become durable together" if groups.target else "each by itself"
        lines.append(f"  {many}: {groups.why}")
    if commits_its_emitters(plan):
        lines += ["  before all bolts", *_table([(*_names(plan.spout), "commits")], 4)]
    for turn, names in enumerate(plan.commit_stages):
        lines += [f"  turn {turn}", *_table(_commit_rows(plan, names), 4)]
    if sinks:
        rows = [(*_names(planned), "commits what it has pre-committed") for planned in sinks]
        lines += ["  after all others, in the driver process", *_table(rows, 4)]
    if not (plan.commit_stages or commits_its_emitters(plan) or sinks):
        lines.append("  no bolt takes part: a transaction is committed once it is processed")
    lines += ["", "Streams", *_table(list(_streams(plan)), 2)]
    lines += ["", "Tuples", *_table([_edge_row(edge) for edge in plan.edges], 2)]
    deferred = list(_deferred_rows(plan))
    if deferred:
        lines += ["", "Deferred to the commit phase", *_table(deferred, 2)]
    return "\n".join(lines) + "\n"


def _commit_place(plan: Plan) -> str:
    places = {plan.components[name].commit_placement for turn in plan.commit_stages for name in turn}
    if Placement.EXECUTORS not in places:
        return "in the driver process"
    if places == {Placement.EXECUTORS} and not commits_its_emitters(plan):
        return "on the executors"
    return "in the driver process where nothing else is said"


def commits_its_emitters(plan: Plan) -> bool:
    """Return whether the spout's emitters take part in the commit phase."""
    return isinstance(plan.spout.component.obj, ICommitterTransactionalSpout)


def kind_of(planned: PlannedComponent) -> str:
    """Return what a component is, in words."""
    component = planned.component
    commits = component.committer or isinstance(component.obj, ICommitterTransactionalSpout)
    return component.kind.value + (", columnar" if component.columnar else "") + (", committer" if commits else "")


def tasks_of(planned: PlannedComponent) -> str:
    """Return how many tasks a component has, in words."""
    return "1 task" if len(planned.tasks) == 1 else f"{len(planned.tasks)} tasks"


def grouping_of(edge: Edge) -> str:
    """Return the grouping of an edge, in words; a custom one by its class."""
    grouping = edge.grouping
    if grouping.kind is GroupingKind.CUSTOM:
        return f"{grouping} ({type(grouping.custom).__name__})"
    return str(grouping)


def _table(rows: list[Row], indent: int) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)] if rows else []
    return [
        (" " * indent + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))).rstrip()
        for row in rows
    ]


def _names(planned: PlannedComponent) -> Row:
    first, last = planned.tasks[0], planned.tasks[-1]
    ids = f"({first})" if first == last else f"({first} to {last})"
    return planned.id, kind_of(planned), f"{tasks_of(planned)} {ids}"


def _rows(plan: Plan, names: tuple[str, ...]) -> list[Row]:
    def does(planned: PlannedComponent) -> str:
        if planned is plan.spout:
            return "emits"
        bolt = sink_of(planned.component)
        if bolt is not None:
            return PROMISES[bolt.semantic]
        return "executes" if planned.deferred or _is_basic(planned) else "executes and finishes"

    return [(*_names(planned), does(planned)) for planned in (plan.components[name] for name in names)]


def _commit_rows(plan: Plan, names: tuple[str, ...]) -> list[Row]:
    rows = []
    mixed = _commit_place(plan) == "in the driver process where nothing else is said"
    for name in names:
        planned = plan.components[name]
        does = ["finishes"] if not _is_basic(planned) else []
        if any(edge.transfer is Transfer.COMMIT for edge in plan.in_edges(name)):
            does.insert(0, "executes" if planned.stage is None else "executes the rest")
        where = ", on the executors" if mixed and planned.commit_placement is Placement.EXECUTORS else ""
        rows.append((*_names(planned), " and ".join(does) + where))
    return rows


def _is_basic(planned: PlannedComponent) -> bool:
    return planned.component.kind is ComponentKind.BASIC_BOLT


def _streams(plan: Plan) -> Iterator[Row]:
    for name, planned in plan.components.items():
        for stream, declared in planned.component.streams.items():
            direct = "  direct" if declared.direct else ""
            yield str(GlobalStreamId(name, stream)), f"[{', '.join(declared.fields)}]{direct}"


def _edge_row(edge: Edge) -> Row:
    source = GlobalStreamId(edge.source, edge.stream)
    return f"{source} → {edge.target}", grouping_of(edge), edge.transfer.value


def _deferred_rows(plan: Plan) -> Iterator[Row]:
    graph = graph_of(plan.topology)
    committers = [name for name, planned in plan.components.items() if planned.component.committer]
    for turn in plan.commit_stages:
        for name in turn:
            if name in committers:
                why = "is a committer"
            else:
                sources = (source for source in committers if nx.has_path(graph, source, name))
                path = min((nx.shortest_path(graph, source, name) for source in sources), key=len)
                why = f"gets what committer {path[0]} emits ({' → '.join(path)})"
            yield name, why, _where_it_executes(plan, plan.components[name])


def _where_it_executes(plan: Plan, planned: PlannedComponent) -> str:
    if planned.stage is not None:
        gathers = ", ".join(gathered_by(planned.component.obj) or ())
        return f"executes on the executors, as it says what it gathers: {gathers or 'nothing'}"
    if _is_basic(planned):
        return "executes at the commit, as it is a BasicBolt"
    if all(plan.components[edge.source].deferred for edge in plan.in_edges(planned.id)):
        return "executes at the commit, as only deferred bolts reach it"
    return "executes at the commit; with gathers = (…) in its class it would execute on the executors"
