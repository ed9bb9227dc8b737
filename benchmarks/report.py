"""Renders the table and the chart from the JSON again, and puts the table into README.md.

python -m benchmarks.report [--results DIR]
"""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console

from benchmarks.measuring.machine import ROOT
from benchmarks.reporting.chart import draw
from benchmarks.reporting.readme import with_table
from benchmarks.reporting.results import Results
from benchmarks.reporting.table import markdown_page, markdown_table, notes, terminal_table

RESULTS = ROOT / "benchmarks" / "results"


def render(results: Results, directory: Path) -> list[Path]:
    """Write table.md, chart.png and chart.svg; return their paths."""
    page = directory / "table.md"
    page.write_text(markdown_page(results), encoding="utf-8")
    return [page, *draw(results, directory)]


def console() -> Console:
    """Return a console that does not fold the table where nobody's terminal is too narrow for it."""
    return Console() if sys.stdout.isatty() else Console(width=140)


def show(results: Results, out: Console) -> None:
    """Print the table and its notes."""
    out.print(terminal_table(results))
    for line in notes(results):
        out.print(line, style="dim", markup=False, highlight=False)


@click.command(help=__doc__)
@click.option(
    "--results",
    "directory",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    default=RESULTS,
    help="Where latest.json is, and the table and the chart go. README.md is written only for the default.",
)
def main(directory: Path) -> None:
    results = Results.read(directory)
    for path in render(results, directory):
        click.echo(f"wrote {path}")
    if directory.resolve() == RESULTS:
        readme = ROOT / "README.md"
        readme.write_text(with_table(readme.read_text(encoding="utf-8"), markdown_table(results)), encoding="utf-8")
        click.echo(f"wrote {readme}")
    show(results, console())


if __name__ == "__main__":
    main()
