"""Measures Stormline, row by row, and writes the results as JSON, table and chart.

python -m benchmarks [--only P1,P3] [--repeats 5] [--kills 10] [--quick] [--no-peers] [--output DIR]
"""

from __future__ import annotations

from pathlib import Path

import click

from benchmarks.goals import ROWS
from benchmarks.report import RESULTS
from benchmarks.session import Session

PEERS_ROWS = ("P4", "P5", "P6", "S5", "S6", "K3", "K4")
PARTIAL = RESULTS / "partial"


def chosen(only: str | None, no_peers: bool) -> frozenset[str]:
    """Return the rows to measure.

    Raises:
        click.BadParameter: there is no such row.
    """
    rows = [row.strip().upper() for row in only.split(",")] if only else list(ROWS)
    unknown = [row for row in rows if row not in ROWS]
    if unknown:
        raise click.BadParameter(f"there is no row {unknown[0]!r}; there are {', '.join(ROWS)}", param_hint="--only")
    return frozenset(row for row in rows if not (no_peers and row in PEERS_ROWS))


@click.command(help=__doc__)
@click.option("--only", metavar="ROWS", help="Measure these rows only, for example P1,P3.")
@click.option("--repeats", type=click.IntRange(min=1), default=5, show_default=True, help="Pairs of each figure.")
@click.option("--kills", type=click.IntRange(min=1), default=10, show_default=True, help="Kills of each driver in S6.")
@click.option("--quick", is_flag=True, help="Cut the amounts: shows that all works, and says little.")
@click.option("--no-peers", is_flag=True, help="Leave out the rows that other engines are measured for.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the results go. Default: benchmarks/results, or its folder `partial` where not all is measured.",
)
def main(only: str | None, repeats: int, kills: int, quick: bool, no_peers: bool, output: Path | None) -> None:
    rows = chosen(only, no_peers)
    complete = rows == frozenset(ROWS) and not quick
    Session(rows, repeats, kills, quick, output or (RESULTS if complete else PARTIAL)).run()


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
