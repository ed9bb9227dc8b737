"""Reporters: what a run prints of its progress. All their methods are called from the main thread."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from types import TracebackType
from typing import Any, TextIO, cast

import click
from rich.console import Console
from rich.file_proxy import FileProxy
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from stormline.cli.rates import Rates
from stormline.runtime.coordination.progress import Snapshot

LINE_SECS = 1.0
"""Time between two lines of live progress where there is no terminal to redraw one on."""
AUTO_LINE_SECS = 5.0
"""Time between two lines where nobody has asked for live progress."""
SAME_LINE_SECS = 10.0
"""Time after which a line is printed although nothing was committed since the last one: the run is alive."""


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Go on in silence where rich would end the process: a run does not end because nobody reads of it."""
        self.quiet = True
        print_nowhere(self.file.fileno())


def print_nowhere(descriptor: int) -> None:
    """Lead what is printed there nowhere."""
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), descriptor)


class Reporter:
    """Prints notices and nothing else: progress is not wanted."""

    redraws = False
    """Whether there is a line that what others print on the terminal would tear."""

    def __init__(self) -> None:
        # A descriptor of its own: while Spark starts, what goes to the process's standard error is held back.
        self._file = os.fdopen(os.dup(2), "w", encoding=sys.stderr.encoding or "utf-8", errors="replace")
        self.console = _Console(file=self._file, markup=False, emoji=False, highlight=False, soft_wrap=True)

    def __enter__(self) -> Reporter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Print nothing more. May be called again."""
        self._file.close()

    def notice(self, text: str) -> None:
        """Print a line to standard error, whatever progress is shown."""
        self.console.print(text)

    def starting(self, topology: str, state: str) -> None:
        """Report that a run begins, and where its state is."""

    def begun(self, topology: str, txid: int) -> None:
        """Report that the topology runs, and which transaction is the first that is not committed."""

    def wave(self, snapshot: Snapshot) -> None:
        """Report that a wave has ended."""

    def look(self, snapshot: Snapshot) -> None:
        """Take a look at the running topology: several times a second."""

    def tick(self) -> None:
        """Report that time passes, before the topology runs."""

    def ended(self, snapshot: Snapshot) -> None:
        """Report that the run has ended, well or stopped."""

    def failed(self, snapshot: Snapshot) -> None:
        """Report that the run has failed, with these counts."""

    def report(self, text: object) -> None:
        """Print what the module reports of a run that ended well, on standard output."""
        click.echo(text)


class JsonReporter(Reporter):
    """Prints a JSON object a wave on standard output, one at the end, and one for the module's report."""

    def wave(self, snapshot: Snapshot) -> None:
        """Print the counts so far; the transactions of this wave are not committed yet."""
        self._print("wave", **asdict(snapshot))

    def ended(self, snapshot: Snapshot) -> None:
        """Print the final counts."""
        self._print("end", **asdict(snapshot))

    def failed(self, snapshot: Snapshot) -> None:
        """Print the final counts; why it failed goes to standard error."""
        self.ended(snapshot)

    def report(self, text: object) -> None:
        """Print it as an object too."""
        self._print("report", text=str(text))

    def _print(self, event: str, **what: Any) -> None:
        try:
            click.echo(json.dumps({"event": event, **what}, default=str))
        except BrokenPipeError:  # nobody reads any more: the run goes on
            print_nowhere(sys.stdout.fileno())


class LineReporter(Reporter):
    """Prints a line to standard error every `line_secs` at most, and a summary: for logs."""

    def __init__(self, line_secs: float = LINE_SECS) -> None:
        super().__init__()
        self._rates = Rates()
        self._line_secs = line_secs
        self._shown_secs = -line_secs
        self._shown = -1

    def starting(self, topology: str, state: str) -> None:
        """Say where the state is."""
        self.notice(f"{topology}: {state}")

    def begun(self, topology: str, txid: int) -> None:
        """Say where it begins, or goes on."""
        self.notice(f"{topology}: {'begins' if txid == 1 else 'goes on'} at transaction {txid:,}")

    def look(self, snapshot: Snapshot) -> None:
        """Print a line if something was committed or takes long, and the last line is old enough."""
        rates = self._rates.look(snapshot)
        age_secs = snapshot.elapsed_secs - self._shown_secs
        same = snapshot.txid_committed == self._shown
        if age_secs < self._line_secs or (same and (age_secs < SAME_LINE_SECS or not snapshot.processing)):
            return
        self._shown_secs, self._shown = snapshot.elapsed_secs, snapshot.txid_committed
        self.notice(progress_line(snapshot, *rates))

    def ended(self, snapshot: Snapshot) -> None:
        """Print the summary, and what metrics have counted."""
        self.notice(summary(snapshot))
        for component, metrics in snapshot.metrics.items():
            for name, value in metrics.items():
                self.notice(f"  {component}  {name}: {shown_metric(value)}")

    def failed(self, snapshot: Snapshot) -> None:
        """Print the summary; why it failed comes after it."""
        self.ended(snapshot)


class LiveReporter(LineReporter):
    """Redraws one line on the terminal, and leaves a summary."""

    redraws = True

    def __init__(self) -> None:
        super().__init__()
        self._stderr: TextIO | None = None
        # What committers print on the same terminal goes above the line.
        self._spinner = Spinner("dots")
        self._live = Live(
            self._spinner,
            console=self.console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=sys.stdout.isatty(),
            redirect_stderr=False,  # what Python warns of while Spark starts is held back with the rest
        )

    def __enter__(self) -> Reporter:
        self._live.start()
        return self

    def close(self) -> None:
        """Remove the line."""
        self._stop()
        super().close()

    def _stop(self) -> None:
        if self._stderr is not None:
            sys.stderr.flush()
            sys.stderr, self._stderr = self._stderr, None
        self._live.stop()

    def starting(self, topology: str, state: str) -> None:
        """Say where the state is, and that Spark starts."""
        super().starting(topology, state)
        self._draw(f"{topology}  starting Spark")

    def begun(self, topology: str, txid: int) -> None:
        """Say where it begins; what user code prints to standard error goes above the line from now on."""
        super().begun(topology, txid)
        if sys.stderr.isatty():
            self._stderr, sys.stderr = sys.stderr, cast(TextIO, FileProxy(self.console, sys.stderr))

    def tick(self) -> None:
        """Turn the spinner."""
        self._live.refresh()

    def look(self, snapshot: Snapshot) -> None:
        """Redraw the line."""
        self._draw(progress_line(snapshot, *self._rates.look(snapshot)))

    def ended(self, snapshot: Snapshot) -> None:
        """Replace the line by the summary."""
        self._stop()
        super().ended(snapshot)

    def _draw(self, line: str) -> None:
        self._spinner.update(text=Text(line[: self.console.width - 3]))
        self._live.refresh()


def progress_line(snapshot: Snapshot, transactions_per_sec: float, tuples_per_sec: float) -> str:
    """Return one look at a run: rates over the last seconds, and the averages of the run."""
    return " · ".join((
        f"{snapshot.topology}  txid {snapshot.txid_committed:,} committed",
        f"{transactions_per_sec:,.1f} transactions/s (avg {snapshot.transactions_per_sec:,.1f})",
        f"{tuples_per_sec:,.0f} tuples/s (avg {snapshot.tuples_per_sec:,.0f})",
        f"{snapshot.processing} in processing",
        f"{snapshot.replays} replays",
        f"{snapshot.elapsed_secs:.0f} s",
    ))  # fmt: skip


def summary(snapshot: Snapshot) -> str:
    """Return what a run has done."""
    return (
        f"{snapshot.topology}: {snapshot.transactions:,} transactions, {snapshot.tuples:,} tuples in "
        f"{snapshot.elapsed_secs:.1f} s: {snapshot.transactions_per_sec:,.1f} transactions/s, "
        f"{snapshot.tuples_per_sec:,.0f} tuples/s, {snapshot.replays} replays; "
        f"committed up to txid {snapshot.txid_committed:,}"
    )


def shown_metric(value: object) -> str:
    """Return the value of a metric as a person reads it."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {shown_metric(one)}" for name, one in value.items())
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if type(value) is int else str(value)


def reporter_for(progress: str) -> Reporter:
    """Return the reporter for `--progress`."""
    terminal = sys.stderr.isatty()
    if progress == "json":
        return JsonReporter()
    if progress == "none":
        return Reporter()
    if terminal:
        return LiveReporter()
    return LineReporter(LINE_SECS if progress == "live" else AUTO_LINE_SECS)
