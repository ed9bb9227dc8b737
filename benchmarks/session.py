"""Session: one run of the benchmarks, from the first row to the chart; SIGINT and SIGTERM end it at once."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import signal
import time
from pathlib import Path
from types import FrameType
from typing import NoReturn

import psutil
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from benchmarks.figure import Figure, Status
from benchmarks.figures import RUNS, Run
from benchmarks.measuring.bench import Bench
from benchmarks.measuring.fresh import end_tree
from benchmarks.measuring.lab import Lab
from benchmarks.measuring.machine import machine, versions
from benchmarks.measuring.recorder import Recorder
from benchmarks.report import console, render, show
from benchmarks.reporting.caveats import CAVEATS
from benchmarks.reporting.results import Results
from benchmarks.reporting.table import ratio_text, unmarked, verdict


class Session:
    """Measures the chosen rows one after another. What has been measured is kept, whatever fails."""

    def __init__(self, rows: frozenset[str], repeats: int, kills: int, quick: bool, output: Path) -> None:
        self._runs = [run for run in RUNS if rows & set(run.rows)]
        self._output = output
        self._console = console()
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("[bold]{task.fields[rows]}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False),
            console=self._console,
            transient=True,
            redirect_stderr=False,  # what the JVM writes there is held back while it starts
        )
        self._recorder = Recorder(rows, self._on_pair)
        self._lab = Lab()
        self._bench = Bench(self._lab, self._recorder, repeats, kills, quick, self._say)
        self._begun = time.monotonic()
        self._task = self._progress.add_task("", rows="", total=None, visible=False)
        self._results = Results(
            date=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            machine=machine(),
            versions=versions(),
            figures=list(self._recorder.figures.values()),
            repeats=repeats,
            quick=quick,
            load={"before": _load()},
            caveats=CAVEATS,
        )

    def run(self) -> None:
        """Measure, write and show. Does not return where a signal ends it."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._leave)
        self._console.print(f"{self._results.machine['cpu']}, {self._results.machine['cores']} cores", style="dim")
        with self._progress:
            for run in self._runs:
                self._measure(run)
            self._say("ending Spark")
            self._lab.close()
        self._write()
        render(self._results, self._output)
        show(self._results, self._console)
        self._console.print(f"{self._results.secs / 60:.1f} minutes; wrote {self._output}", highlight=False)

    def _measure(self, run: Run) -> None:
        figures = [f for f in self._recorder.figures.values() if f.goal.row in run.rows and self._wants(f)]
        total = self._bench.repeats * len(figures)
        rows = " ".join(dict.fromkeys(figure.goal.row for figure in figures))
        self._progress.reset(self._task, rows=rows, total=total, visible=True, description="")
        begun = time.monotonic()
        try:
            run(self._bench)
        except Exception as error:
            self._recorder.ended(run.rows, error)
            self._start_anew()
        else:
            self._recorder.ended(run.rows)
        for figure in figures:
            self._print(figure)
        self._results.row_secs[rows] = round(time.monotonic() - begun, 1)
        self._write()

    def _wants(self, figure: Figure) -> bool:
        return self._recorder.wants(figure.goal.key)

    def _start_anew(self) -> None:
        """Give the next row a new Spark: nobody knows what the failed one has left."""
        end_children()
        with contextlib.suppress(Exception):
            self._lab.close()
        self._lab = self._bench.lab = Lab()

    def _say(self, text: str) -> None:
        self._progress.update(self._task, description=text)
        self._tell(text)

    def _on_pair(self, figure: Figure) -> None:
        self._progress.update(self._task, advance=1, description=f"{figure.goal.key} {figure.pairs[-1].ratio:.3g}")
        self._tell(f"{figure.goal.key} {figure.pairs[-1].ratio:.3g}")

    def _tell(self, text: str) -> None:
        """Print a line where there is no terminal to show progress on."""
        if not self._console.is_terminal:
            self._console.print(f"      {text}", style="dim", markup=False, highlight=False)

    def _print(self, figure: Figure) -> None:
        goal = figure.goal
        style = {True: "green", False: "red", None: "yellow"}[figure.reached]
        line = (
            f"{goal.key:5} {ratio_text(figure):28} {goal.text:7} "
            f"{unmarked(verdict(figure)):14} {goal.measured} / {goal.against}"
        )
        self._console.print(line, style=style, markup=False, highlight=False)
        if figure.reason and figure.status is not Status.LEFT_OUT:
            self._console.print(f"      {figure.reason}", style=style, markup=False, highlight=False)

    def _write(self) -> None:
        self._results.secs = time.monotonic() - self._begun
        self._results.load["after"] = _load()
        self._results.versions.update(self._recorder.versions)
        self._results.peers = list(self._recorder.peers)
        self._results.write(self._output)

    def _leave(self, number: int, frame: FrameType | None) -> NoReturn:
        """Keep what has been measured and end: no context manager would end Spark as soon as this does."""
        for ignored in (signal.SIGINT, signal.SIGTERM):
            signal.signal(ignored, signal.SIG_IGN)
        end_children()
        self._recorder.interrupted()
        self._write()
        self._progress.stop()
        measured = sum(bool(figure.pairs) for figure in self._results.figures)
        self._console.print(
            f"stopped by {signal.Signals(number).name}; what {measured} figures had measured is kept in {self._output}",
            style="yellow",
        )
        self._lab.remove_files()
        os._exit(128 + number)


def end_children() -> None:
    """Kill all processes that this one has started, and those that they have."""
    for child in psutil.Process().children():
        end_tree(child.pid)


def _load() -> list[float]:
    return [round(average, 2) for average in os.getloadavg()]
