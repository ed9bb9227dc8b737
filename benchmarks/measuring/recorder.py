"""Recorder: takes down what the rows measure, pair by pair, so that nothing is lost however a run ends."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.figure import Figure, Pair, Status
from benchmarks.goals import GOALS
from benchmarks.measuring.machine import ROOT
from benchmarks.peers.protocol import Measurement


class NotAvailable(Exception):
    """What a row measures, or measures against, is not there. The message says what is missing."""


class Recorder:
    """All figures of one run of the benchmarks, and what the peers told. `on_pair` is told of every pair."""

    def __init__(self, rows: frozenset[str], on_pair: Callable[[Figure], None] = lambda figure: None) -> None:
        self._on_pair = on_pair
        self.peers: list[dict[str, Any]] = []
        self.versions: dict[str, str] = {}
        self.figures = {goal.key: Figure(goal) for goal in GOALS}
        for figure in self.figures.values():
            if figure.goal.row not in rows:
                figure.status, figure.reason = Status.LEFT_OUT, "not asked for"

    def wants(self, key: str) -> bool:
        """Return whether a figure is still to be measured."""
        return self.figures[key].status is Status.WAITING

    def pair(self, key: str, ours: float, theirs: float, **detail: Any) -> None:
        """Take down one pair."""
        figure = self.figures[key]
        figure.pairs.append(Pair(ours, theirs, detail))
        self._on_pair(figure)

    def in_place(self, key: str, ours: float, theirs: float, **detail: Any) -> None:
        """Take down the one pair of a figure that grows with the run, in place of the one before."""
        self.figures[key].pairs.clear()
        self.pair(key, ours, theirs, **detail)

    def note(self, key: str, text: str) -> None:
        """Say something about a figure that its pairs do not."""
        self.figures[key].notes.append(text)

    def told_by(self, peer: Measurement, key: str, first: bool) -> None:
        """Take down what a peer tells of a measurement for a figure; of the first one also its version and notes."""
        self.peers.append(asdict(peer))
        if first:
            self.versions[peer.peer] = peer.version
            if peer.notes:
                self.note(key, f"{peer.peer}: {peer.notes}")

    def give_up(self, key: str, status: Status, reason: str) -> None:
        """Take down why a figure is not measured, or not to its end; what it has is kept."""
        if self.wants(key):
            self.figures[key].status, self.figures[key].reason = status, without_paths(reason)

    def ended(self, rows: tuple[str, ...], error: Exception | None = None) -> None:
        """Settle the figures of rows that have ended, well or by `error`."""
        for key, figure in self.figures.items():
            if figure.goal.row not in rows or not self.wants(key):
                continue
            if error is None and figure.pairs:
                figure.status = Status.MEASURED
            elif error is None:
                self.give_up(key, Status.FAILED, "nothing was measured")
            elif isinstance(error, NotAvailable):
                self.give_up(key, Status.NOT_AVAILABLE, str(error))
            else:
                self.give_up(key, Status.FAILED, f"{type(error).__name__}: {error}")

    def interrupted(self) -> None:
        """Settle all figures that are still to be measured."""
        for key, figure in self.figures.items():
            self.give_up(key, Status.INTERRUPTED, f"the run was stopped after {len(figure.pairs)} pairs")


def without_paths(text: str) -> str:
    """Return a text without what is this machine's own: results are published."""
    places = {str(ROOT): ".", sys.prefix: "PREFIX", tempfile.gettempdir(): "TMP", str(Path.home()): "~"}
    for place in sorted(places, key=len, reverse=True):
        if place != "/":
            text = re.sub(rf"{re.escape(place)}(?=/|\b)", places[place], text)
    return text
