"""visualize: the graph of a compiled plan as Mermaid or DOT text; svg.py draws it without either."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stormline.topology.explain import grouping_of, kind_of, tasks_of
from stormline.topology.grouping import DEFAULT_STREAM
from stormline.topology.plan import Edge, Plan, PlannedComponent
from stormline.topology.svg import svg


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase and its colours."""

    name: str
    fill: str
    line: str


PROCESSING = Phase("processing", "#dbeafe", "#1d4ed8")
COMMIT = Phase("commit", "#ffedd5", "#c2410c")


def phase_of(planned: PlannedComponent) -> Phase:
    """Return the phase in which a component finishes a batch."""
    return COMMIT if planned.deferred else PROCESSING


def node_lines(planned: PlannedComponent) -> list[str]:
    """Return what a node says: id, kind, tasks."""
    return [planned.id, kind_of(planned), tasks_of(planned)]


def edge_label(edge: Edge) -> str:
    """Return what an edge says: its grouping, and its stream where that is not the default one."""
    return grouping_of(edge) if edge.stream == DEFAULT_STREAM else f"{edge.stream}: {grouping_of(edge)}"


def mermaid(plan: Plan) -> str:
    """Return the graph as a Mermaid flowchart."""
    names = {name: f"n{i}" for i, name in enumerate(plan.components)}
    lines = ["flowchart LR"]
    for name, planned in plan.components.items():
        label = "<br/>".join(map(_mermaid_text, node_lines(planned)))
        opening, closing = ("([", "])") if planned is plan.spout else ("[[", "]]") if _commits(planned) else ("[", "]")
        lines.append(f'    {names[name]}{opening}"{label}"{closing}:::{phase_of(planned).name}')
    lines += [
        f'    {names[edge.source]} -->|"{_mermaid_text(edge_label(edge))}"| {names[edge.target]}' for edge in plan.edges
    ]
    lines += [
        f"    classDef {phase.name} fill:{phase.fill},stroke:{phase.line},color:#111827"
        for phase in (PROCESSING, COMMIT)
    ]
    return "\n".join(lines) + "\n"


def dot(plan: Plan) -> str:
    """Return the graph in Graphviz's language."""
    lines = [
        f"digraph {_dot_text(plan.topology_id)} {{",
        "    rankdir=LR",
        '    node [shape=box, style="rounded,filled", fontname="Helvetica"]',
        '    edge [fontname="Helvetica", fontsize=11]',
    ]
    for name, planned in plan.components.items():
        phase, border = phase_of(planned), 2 if _commits(planned) else 1
        colours = f'fillcolor="{phase.fill}", color="{phase.line}", peripheries={border}'
        lines.append(f"    {_dot_text(name)} [label={_dot_text(*node_lines(planned))}, {colours}]")
    for edge in plan.edges:
        label = _dot_text(edge_label(edge))
        lines.append(f"    {_dot_text(edge.source)} -> {_dot_text(edge.target)} [label={label}]")
    return "\n".join([*lines, "}"]) + "\n"


def picture(plan: Plan) -> str:
    """Return the graph as an SVG picture."""
    return svg(
        title=plan.topology_id,
        nodes={name: node_lines(planned) for name, planned in plan.components.items()},
        edges=[(edge.source, edge.target, edge_label(edge)) for edge in plan.edges],
        colours={name: (phase_of(planned).fill, phase_of(planned).line) for name, planned in plan.components.items()},
        doubled={name for name, planned in plan.components.items() if _commits(planned)},
        legend=[(f"finishes in the {phase.name} phase", phase.fill, phase.line) for phase in (PROCESSING, COMMIT)],
    )


FORMATS: dict[str, Callable[[Plan], str]] = {"mermaid": mermaid, "dot": dot, "svg": picture}


def _commits(planned: PlannedComponent) -> bool:
    return kind_of(planned).endswith("committer")


def _mermaid_text(text: str) -> str:
    # Entities by number: Mermaid reads quotes, brackets, '#', markdown and HTML inside of labels too.
    return "".join(c if c.isalnum() or c in " ,.:()-_/+" else f"#{ord(c)};" for c in text)


def _dot_text(*lines: str) -> str:
    escaped = (line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") for line in lines)
    return '"' + "\\n".join(escaped) + '"'
