"""Compares this checkout with another one, measurement by measurement in pairs: python -m benchmarks.compare OTHER.

OTHER is the root of another checkout, as made by `git worktree add ../before COMMIT`. Each of the two runs in a process
of its own, with its own Spark and ZooKeeper, and stands still while the other one is measured.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import TracebackType

import click

from benchmarks.measuring.bench import alternately

ROOT = Path(__file__).resolve().parents[1]

CHILD = """
import inspect, sys
try:
    from benchmarks.measuring.lab import Lab
    from benchmarks.measuring.settings import BATCH_TUPLES, PENDING, PENDING_SMALL
except ModuleNotFoundError:  # a checkout from before the measuring had a folder
    from benchmarks.lab import Lab
    from benchmarks.settings import BATCH_TUPLES, PENDING, PENDING_SMALL
from benchmarks.topologies.global_count import global_count, small_batches
from benchmarks.topologies.words import words

def answer(text):
    print("answer", text, file=sys.__stdout__, flush=True)

MEASURES = {
    "P1": (lambda i: global_count(i, BATCH_TUPLES), 256, 512, BATCH_TUPLES),
    "P1b": (lambda i: global_count(i, BATCH_TUPLES, one_by_one=True), 256, 128, BATCH_TUPLES),
    "P2, P6b": (lambda i: words(i, BATCH_TUPLES), PENDING, 128, BATCH_TUPLES),
    "P3, P6c": (small_batches, PENDING_SMALL, 8 * PENDING_SMALL, 1),
}
if "declared" in inspect.signature(words).parameters:
    MEASURES["undeclared Words"] = (lambda i: words(i, BATCH_TUPLES, declared=False), 16, 16, BATCH_TUPLES)
with Lab() as lab:
    answer(" | ".join(MEASURES))
    for line in sys.stdin:
        name = line.strip()
        build, pending, batches, of = MEASURES[name]
        with lab.submit(build, pending) as stream:
            stream.run(pending)
            answer(batches * of / stream.run(batches))
"""


class Tree:
    """A checkout that measures itself."""

    def __init__(self, root: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", CHILD],
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(root)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.measures = self._answer().split(" | ")

    def __enter__(self) -> Tree:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def rate(self, measure: str) -> float:
        """Return tuples, or transactions, a second."""
        assert self._process.stdin is not None
        print(measure, file=self._process.stdin, flush=True)
        return float(self._answer())

    def _answer(self) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("answer "):
                return line.removeprefix("answer ").strip()
        raise click.ClickException("a checkout has ended without an answer; run its benchmarks by hand to see why")


@click.command()
@click.argument("other", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--repeats", default=5, show_default=True, help="Pairs of each measurement.")
@click.option("--only", default="", help="Names of measurements, separated by semicolons.")
def main(other: Path, repeats: int, only: str) -> None:
    """Print, for each measurement, how fast this checkout is against OTHER: the median ratio of pairs, min to max."""
    with Tree(ROOT) as ours, Tree(other.resolve()) as theirs:
        for measure in ours.measures:
            if only and measure not in only.split(";"):
                continue
            instead = measure if measure in theirs.measures else "P2, P6b"
            rates = (partial(ours.rate, measure), partial(theirs.rate, instead))
            pairs = [alternately(number, *rates) for number in range(repeats)]
            ratios = [one / two for one, two in pairs]
            mine, its = (statistics.median(rates) for rates in zip(*pairs, strict=True))
            click.echo(
                f"{measure:17} {statistics.median(ratios):6.3f} ({min(ratios):.3f} to {max(ratios):.3f})  "
                f"{mine:12,.0f} : {its:12,.0f} a second"
            )


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.compare")
