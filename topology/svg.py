"""svg: draws a layered graph from left to right, without Graphviz.

A node stands in the column after the last of its sources. An edge passes through one point in every gap between two
columns, and through one in every column that it crosses; its label sits in the first gap, on the edge. Points and
nodes are ordered by where their neighbours are (the barycentre method), and pushed apart until none overlap.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from xml.sax.saxutils import escape, quoteattr

import networkx as nx

FONT_PX = 13
LABEL_PX = 11
CHAR_RATIO = 0.56
LINE_HEIGHT_PX = 18
NODE_PADDING_PX = 12
ROW_GAP_PX = 26
COLUMN_GAP_MIN_PX = 70
LABEL_HEIGHT_PX = 20
MARGIN_PX = 24
SWEEPS = 12


@dataclass(slots=True, eq=False)
class _Item:
    """Something in a column: a node, or the place where an edge passes."""

    height: float
    y: float = 0.0
    before: list[_Item] = field(default_factory=list)
    after: list[_Item] = field(default_factory=list)

    def pull(self, neighbours: list[_Item]) -> float:
        return sum(item.y for item in neighbours) / len(neighbours) if neighbours else self.y


def svg(
    title: str,
    nodes: Mapping[str, Sequence[str]],
    edges: Sequence[tuple[str, str, str]],
    colours: Mapping[str, tuple[str, str]],
    doubled: Collection[str],
    legend: Sequence[tuple[str, str, str]],
) -> str:
    """Return a picture.

    Args:
        nodes: what each node says, in lines, the first one in bold.
        edges: source, target, label; together without a cycle, several may join the same nodes.
        colours: fill and line of each node.
        doubled: the nodes that get a second border.
        legend: what it says, fill and line of each entry.
    """
    graph = nx.DiGraph((source, target) for source, target, _ in edges)
    graph.add_nodes_from(nodes)
    column_of = {name: i for i, names in enumerate(nx.topological_generations(graph)) for name in names}
    columns = max(column_of.values()) + 1
    # Even layers are columns, odd ones the gaps between them.
    layers: list[list[_Item]] = [[] for _ in range(2 * columns - 1)]
    boxes = {name: _Item(len(lines) * LINE_HEIGHT_PX + 2 * NODE_PADDING_PX) for name, lines in nodes.items()}
    for name, box in boxes.items():
        layers[2 * column_of[name]].append(box)
    routes = [_route(boxes, layers, column_of, source, target) for source, target, _ in edges]
    _place(layers)

    widths = _widths(nodes, edges, column_of, columns)
    lefts = [float(MARGIN_PX)]
    for width in widths:
        lefts.append(lefts[-1] + width)
    top = MARGIN_PX + LINE_HEIGHT_PX - min(item.y - item.height / 2 for layer in layers for item in layer) + 12
    bottom = top + max(item.y + item.height / 2 for layer in layers for item in layer)
    legend_width = sum(_text_width(text, LABEL_PX) + 48 for text, _, _ in legend)
    width = max(lefts[-1], MARGIN_PX + legend_width, MARGIN_PX + _text_width(title, 16)) + MARGIN_PX
    height = bottom + 2 * MARGIN_PX + LINE_HEIGHT_PX

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="Helvetica, Arial, sans-serif">',
        f"<title>{escape(_printable(title))}</title>",
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#4b5563"/></marker></defs>',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        _text(MARGIN_PX, MARGIN_PX + 12, title, 16, bold=True, anchor="start"),
    ]
    labels = []
    for (source, target, label), route in zip(edges, routes, strict=True):
        starts, ends = (
            _port(boxes[source], boxes[source].after, route[0]),
            _port(boxes[target], boxes[target].before, route[-1]),
        )
        path, (x, y) = _path(route, 2 * column_of[source], lefts, top, starts, ends)
        parts.append(f'<path d="{path}" fill="none" stroke="#6b7280" stroke-width="1.3" marker-end="url(#arrow)"/>')
        labels.append(_label(x, y, label))
    parts += labels
    for name, lines in nodes.items():
        left, width_px = lefts[2 * column_of[name]], widths[2 * column_of[name]]
        parts += _node(left, top + boxes[name].y, width_px, boxes[name].height, lines, colours[name], name in doubled)
    parts += _legend(legend, height - MARGIN_PX)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _route(
    boxes: Mapping[str, _Item], layers: list[list[_Item]], column_of: Mapping[str, int], source: str, target: str
) -> list[_Item]:
    """Add the points through which an edge passes; return them."""
    first, last = 2 * column_of[source] + 1, 2 * column_of[target]
    route = [_Item(LABEL_HEIGHT_PX) for _ in range(first, last)]
    for layer, item in zip(range(first, last), route, strict=True):
        layers[layer].append(item)
    chain = [boxes[source], *route, boxes[target]]
    for here, there in pairwise(chain):
        here.after.append(there)
        there.before.append(here)
    return route


def _place(layers: list[list[_Item]]) -> None:
    """Give every item its y: near its neighbours, without overlap."""
    for layer in layers:
        _spread(layer, [float(i) for i in range(len(layer))])
    for sweep in range(SWEEPS):
        forward = sweep % 2 == 0
        for layer in layers if forward else reversed(layers):
            wishes = [item.pull(item.before if forward else item.after) for item in layer]
            order = sorted(range(len(layer)), key=lambda i, w=wishes: w[i])  # type: ignore[misc]
            layer[:] = [layer[i] for i in order]
            _spread(layer, [wishes[i] for i in order])
    for layer in [*layers, *reversed(layers)]:
        _spread(layer, [item.pull(item.before + item.after) for item in layer])


def _spread(layer: list[_Item], wishes: list[float]) -> None:
    """Place the items in their order, as near to their wishes as they fit: runs that touch share their mean."""
    runs: list[tuple[list[_Item], float, float]] = []  # items, sum of the wishes for the run's first item, size
    for item, wish in zip(layer, wishes, strict=True):
        size = item.height + (ROW_GAP_PX if item.height > LABEL_HEIGHT_PX else 6)
        run = ([item], wish - size / 2, size)
        while runs and runs[-1][1] / len(runs[-1][0]) + runs[-1][2] > run[1] / len(run[0]):
            items, total, before = runs.pop()
            run = (items + run[0], total + run[1] - before * len(run[0]), before + run[2])
        runs.append(run)
    for items, total, _ in runs:
        y = total / len(items)
        for item in items:
            size = item.height + (ROW_GAP_PX if item.height > LABEL_HEIGHT_PX else 6)
            item.y = y + size / 2
            y += size


def _port(box: _Item, points: list[_Item], point: _Item) -> float:
    """Return where on the side of its node an edge begins or ends: in the order of where the edges go."""
    ordered = sorted(points, key=lambda item: item.y)
    place = (ordered.index(point) + 1) / (len(ordered) + 1)
    return box.y + (place - 0.5) * min(box.height - 16, 16 * len(ordered))


def _widths(
    nodes: Mapping[str, Sequence[str]],
    edges: Sequence[tuple[str, str, str]],
    column_of: Mapping[str, int],
    columns: int,
) -> list[float]:
    """Return the widths of all columns and gaps."""
    widths = [0.0 if layer % 2 == 0 else float(COLUMN_GAP_MIN_PX) for layer in range(2 * columns - 1)]
    for name, lines in nodes.items():
        layer = 2 * column_of[name]
        widths[layer] = max(widths[layer], *(_text_width(line, FONT_PX) + 2 * NODE_PADDING_PX for line in lines))
    for source, _, label in edges:
        layer = 2 * column_of[source] + 1
        widths[layer] = max(widths[layer], _text_width(label, LABEL_PX) + 64)
    return widths


def _path(
    route: list[_Item], source_layer: int, lefts: list[float], top: float, start: float, end: float
) -> tuple[str, tuple[float, float]]:
    """Return the path of an edge, and where its label goes. It is level wherever it passes a point."""
    points = [(lefts[source_layer + 1], top + start)]
    for layer, item in enumerate(route, start=source_layer + 1):
        left, right = lefts[layer], lefts[layer + 1]
        # Level through the whole column, since nodes stand above and below.
        points += [(x, top + item.y) for x in ([left, right] if layer % 2 == 0 else [(left + right) / 2])]
    points.append((lefts[source_layer + 1 + len(route)], top + end))
    commands = [f"M{points[0][0]:.1f},{points[0][1]:.1f}"]
    for (x0, y0), (x1, y1) in pairwise(points):
        middle = (x0 + x1) / 2
        commands.append(f"C{middle:.1f},{y0:.1f} {middle:.1f},{y1:.1f} {x1:.1f},{y1:.1f}")
    return " ".join(commands), points[1]


def _node(
    left: float, y: float, width: float, height: float, lines: Sequence[str], colours: tuple[str, str], doubled: bool
) -> list[str]:
    parts = [_rect(left, y - height / 2, width, height, *colours)]
    if doubled:
        parts.append(_rect(left + 3, y - height / 2 + 3, width - 6, height - 6, "none", colours[1]))
    first = y - (len(lines) - 1) * LINE_HEIGHT_PX / 2
    for i, line in enumerate(lines):
        parts.append(_text(left + width / 2, first + i * LINE_HEIGHT_PX, line, FONT_PX - (i > 0), bold=i == 0))
    return parts


def _legend(legend: Sequence[tuple[str, str, str]], y: float) -> list[str]:
    parts, x = [], float(MARGIN_PX)
    for text, fill, line in legend:
        parts += [_rect(x, y - 7, 14, 14, fill, line), _text(x + 22, y, text, LABEL_PX, anchor="start")]
        x += _text_width(text, LABEL_PX) + 48
    return parts


def _label(x: float, y: float, text: str) -> str:
    width = _text_width(text, LABEL_PX) + 4
    back = f'<rect x="{x - width / 2:.1f}" y="{y - 8:.1f}" width="{width:.1f}" height="16" fill="#ffffff"/>'
    return back + _text(x, y, text, LABEL_PX, colour="#374151")


def _rect(x: float, y: float, width: float, height: float, fill: str, line: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{min(8, width / 4):.0f}" '
        f'fill="{fill}" stroke="{line}" stroke-width="1.2"/>'
    )


def _text(
    x: float, y: float, text: str, size: int, bold: bool = False, anchor: str = "middle", colour: str = "#111827"
) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y + size * 0.35:.1f}" font-size="{size}"{weight} text-anchor={quoteattr(anchor)} '
        f'fill="{colour}">{escape(_printable(text))}</text>'
    )


def _printable(text: str) -> str:
    """Return `text` without the characters that XML does not allow."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _text_width(text: str, size: int) -> float:
    return len(text) * size * CHAR_RATIO
