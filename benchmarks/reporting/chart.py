"""The chart: how many times as good as its goal each figure is, on a logarithmic scale."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.figure import Figure, Status, plain
from benchmarks.reporting.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

REACHED, MISSED, UNKNOWN, INK, FAINT = "#2a78b5", "#c8501e", "#8a8a8a", "#222222", "#dcdcdc"
LINE_INCHES = 0.36
STYLE: Any = {"font.size": 9, "font.family": "DejaVu Sans", "svg.fonttype": "none", "svg.hashsalt": "0"}


def draw(results: Results, directory: Path) -> list[Path]:
    """Write chart.png and chart.svg; return their paths."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figures = [figure for figure in results.figures if figure.status is not Status.LEFT_OUT]
    with plt.rc_context(STYLE):
        canvas, axes = plt.subplots(figsize=(11, 1.7 + LINE_INCHES * max(1, len(figures))))
        _draw(axes, figures)
        _frame(axes, figures, results)
        paths = [directory / "chart.png", directory / "chart.svg"]
        canvas.savefig(paths[0], dpi=150, bbox_inches="tight", facecolor="white")
        canvas.savefig(paths[1], bbox_inches="tight", facecolor="white", metadata={"Date": None})
        plt.close(canvas)
    return paths


def _draw(axes: Axes, figures: list[Figure]) -> None:
    low, high = limits(figures)
    for y, figure in enumerate(figures):
        if figure.ratio is None:
            axes.text(1, y, f" {shortened(figure)}", va="center", ha="left", color=UNKNOWN, style="italic")
            continue
        colour = {True: REACHED, False: MISSED, None: UNKNOWN}[figure.reached]
        scores = [figure.goal.score(ratio) for ratio in figure.ratios]
        score = figure.goal.score(figure.ratio)
        axes.plot([1, score], [y, y], color=colour, linewidth=7, alpha=0.28, solid_capstyle="butt", zorder=2)
        axes.plot([min(scores), max(scores)], [y, y], color=colour, linewidth=1.4, zorder=3)
        axes.plot([score], [y], "o", color=colour, markersize=6.5, zorder=4)
        axes.text(1.015, y, value_text(figure), transform=axes.get_yaxis_transform(), va="center", color=colour)
    axes.axvline(1, color=INK, linewidth=1.3, zorder=1.5)
    axes.set_xscale("log")
    axes.set_xlim(low, high)


def value_text(figure: Figure) -> str:
    """Return what stands right of the chart: the ratio, and the goal."""
    assert figure.ratio is not None
    mark = {True: "✓", False: "✗", None: "·"}[figure.reached]
    return f"{mark} {plain(figure.ratio)}  (goal {figure.goal.text})"


def shortened(figure: Figure, length: int = 60) -> str:
    """Return why a figure is missing, in one line."""
    text = " ".join(f"{figure.status.value}: {figure.reason}".split())
    return text if len(text) <= length else text[: length - 1] + "…"


def limits(figures: list[Figure]) -> tuple[float, float]:
    """Return the ends of the scale: round a goal of 1, with some room."""
    scores = [figure.goal.score(ratio) for figure in figures for ratio in figure.ratios]
    return min([0.5, *(0.8 * score for score in scores)]), max([2.0, *(1.25 * score for score in scores)])


def _frame(axes: Axes, figures: list[Figure], results: Results) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.ticker import FuncFormatter, LogLocator

    axes.set_ylim(len(figures) - 0.4, -0.6)
    labels = [f"{figure.goal.key}   {figure.goal.measured}\nagainst {figure.goal.against}" for figure in figures]
    axes.set_yticks(range(len(figures)), [label.replace("`", "") for label in labels], fontsize=7.5)
    axes.xaxis.set_major_locator(LogLocator(10, (1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))
    axes.xaxis.set_minor_locator(LogLocator(10, (1,)))
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color=FAINT, linewidth=0.8, zorder=0)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    for y, (above, below) in enumerate(itertools.pairwise(figures)):
        if above.goal.row != below.goal.row:
            axes.axhline(y + 0.5, color=FAINT, linewidth=0.6, zorder=0)
    axes.set_xlabel("times as good as the goal (1× is just enough); dot: median, line: smallest to largest pair")
    axes.set_title(
        "Stormline's benchmarks, relative to their goals", loc="left", fontsize=12, fontweight="bold", pad=26
    )
    machine = f"{results.date[:10]} · {results.machine['cores']} cores, {results.machine['cpu']}"
    if results.quick:
        machine += " · quick run, says little"
    axes.text(0, 1.0, f"{machine}\n", transform=axes.transAxes, va="bottom", color=UNKNOWN)
    handles = [
        Line2D([], [], color=colour, marker="o", linewidth=1.4, label=label)
        for colour, label in ((REACHED, "goal reached"), (MISSED, "goal missed"), (INK, "the goal"))
    ]
    handles[-1].set_marker("")
    axes.legend(handles=handles, loc="lower right", bbox_to_anchor=(1, 1.0), ncol=3, frameon=False)
