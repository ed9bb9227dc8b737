"""The table of results, for Markdown and for the terminal, with the notes below it."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.table import Table

from benchmarks.figure import Figure, Status, plain
from benchmarks.reporting.results import Results

HEADINGS = ("", "measured", "against", "ratio (min to max)", "goal", "reached", "median figures")


def cells(figure: Figure) -> tuple[str, ...]:
    """Return a figure's line of the table, below `HEADINGS`."""
    goal = figure.goal
    return (goal.key, goal.measured, goal.against, ratio_text(figure), goal.text, verdict(figure), medians(figure))


def ratio_text(figure: Figure) -> str:
    """Return the median ratio with its range."""
    if figure.ratio is None:
        return "–"
    return f"{plain(figure.ratio)} ({plain(min(figure.ratios))} to {plain(max(figure.ratios))})"


def verdict(figure: Figure) -> str:
    """Return whether the goal is reached, or why nobody knows."""
    if figure.reached is None:
        return figure.status.value
    return "yes" if figure.reached else "**no**"


def medians(figure: Figure) -> str:
    """Return the medians of what was measured and of what it was measured against."""
    if figure.ours is None or figure.theirs is None:
        return ""
    return f"{plain(figure.ours)} : {plain(figure.theirs)} {figure.goal.unit}"


def terminal_table(results: Results) -> Table:
    """Return the table for a terminal."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("", "measured / against", *HEADINGS[3:]):
        table.add_column(heading, overflow="fold", no_wrap=heading in ("", "goal", "reached"))
    row = ""
    for figure in results.figures:
        if figure.status is Status.LEFT_OUT:
            continue
        if row and figure.goal.row != row:
            table.add_row()
        row = figure.goal.row
        key, measured, against, *rest = (unmarked(cell) for cell in cells(figure))
        table.add_row(key, f"{measured} / {against}", *rest, style=_style(figure))
    return table


def _style(figure: Figure) -> str:
    if figure.reached is None:
        return "yellow" if figure.status in (Status.FAILED, Status.INTERRUPTED) else "dim"
    return "green" if figure.reached else "red"


def markdown_table(results: Results) -> str:
    """Return the table as Markdown, with when, where and with what it was measured."""
    lines = [_line(HEADINGS), "|" + "---|" * len(HEADINGS)]
    lines += [_line(cells(figure)) for figure in results.figures]
    return "\n".join([*lines, "", provenance(results)]) + "\n"


def _line(texts: tuple[str, ...]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"


def unmarked(text: str) -> str:
    """Return Markdown as a terminal shows it."""
    return text.replace("`", "").replace("**", "")


def provenance(results: Results) -> str:
    """Return when, where and with what the results were measured, in a sentence or two."""
    machine, versions = results.machine, dict(results.versions)
    names = {"zookeeper": "ZooKeeper", "java": "Java", "python": "Python", "stormline": "Stormline"}
    listed = ", ".join(f"{names.get(name, name)} {version}" for name, version in versions.items() if name != "commit")
    commit = f", at commit {versions['commit']}" if "commit" in versions else ""
    load = results.load.get("before")
    busy = f"; load average before: {load[0]:.2f}" if load else ""
    quick = " A quick run: amounts were cut, the figures say little." if results.quick else ""
    return (
        f"Measured {results.date[:10]}{commit}, on {machine['cores']} cores of {machine['cpu']}, "
        f"{machine['memory_gb']} GB, {machine['os']}{busy}; {listed}. Each ratio is the median of {results.repeats} "
        f"pairs measured alternately in one run of {results.secs / 60:.0f} minutes.{quick}"
    )


def notes(results: Results) -> Iterator[str]:
    """Give a line for each figure that has something to say: why it failed, and what it was measured with."""
    for figure in results.figures:
        said = [figure.reason] if figure.reason and figure.status is not Status.LEFT_OUT else []
        said += figure.notes
        if said:
            yield f"{figure.goal.key}: {'. '.join(text.rstrip('.') for text in said)}."


def markdown_page(results: Results) -> str:
    """Return the whole page: the table, the notes and the caveats."""
    parts = ["# Benchmarks", "", markdown_table(results)]
    lines = list(notes(results))
    if lines:
        parts += ["## Notes", "", *(f"- {line}" for line in lines), ""]
    if results.caveats:
        parts += ["## Caveats", "", *(f"- {caveat}" for caveat in results.caveats), ""]
    return "\n".join(parts).rstrip("\n") + "\n"
