"""Threads of the harness that look on: how far the topology is, and a source that grows."""

from __future__ import annotations

import contextlib
import threading
import time

from tests.chaos.design import Design
from tests.chaos.processes import wait_until
from tests.chaos.results import Away, Results
from tests.chaos.source import Source, SourceFile

LOOK_SECS = 0.05
FEED_SECS = 0.05

BEHIND_BATCHES = 12
"""How many batches the source may be ahead of what is committed. So what is put at its end is soon reached."""


class Watch:
    """Follows the last transaction that all committers of a topology have committed, and how many tuples count."""

    def __init__(self) -> None:
        self._results: Results | None = None
        self._stopping = threading.Event()
        self.txid = 0
        self.tuples = 0
        self.advanced = time.monotonic()
        self._thread = threading.Thread(target=self._look_on, daemon=True, name="watch")
        self._thread.start()

    def follow(self, results: Results | None) -> None:
        """Look at another topology from now on."""
        self._results = results
        self.txid = self.tuples = 0
        self.advanced = time.monotonic()

    def wait_beyond(self, txid: int, timeout_secs: float) -> bool:
        """Wait until a later transaction than `txid` is committed."""
        return bool(wait_until(lambda: self.txid > txid, timeout_secs, 0.02))

    def stop(self) -> None:
        """Look no more."""
        self._stopping.set()
        self._thread.join()

    def _look_on(self) -> None:
        while not self._stopping.wait(LOOK_SECS):
            results = self._results
            if results is not None:
                with contextlib.suppress(Away):  # somebody has killed the server
                    self._look(results)

    def _look(self, results: Results) -> None:
        progress = results.look()
        if results is self._results and progress.least > self.txid:
            self.tuples = progress.tuples
            self.txid = progress.least
            self.advanced = time.monotonic()


class Feeder:
    """Lets the source grow steadily, as long as the topology is not far behind."""

    def __init__(self, source: SourceFile, watch: Watch, tuples_per_sec: int) -> None:
        self._source = source
        self._watch = watch
        self._rate = tuples_per_sec
        self._design: Design | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._feed, daemon=True, name="feeder")
        self._thread.start()

    def feed(self, design: Design | None) -> None:
        """Let this topology's source grow; None: no longer."""
        self._design = design

    def stop(self) -> None:
        """Feed no more."""
        self._stopping.set()
        self._thread.join()

    def _feed(self) -> None:
        before = time.monotonic()
        owed = 0.0
        while not self._stopping.wait(FEED_SECS):
            now = time.monotonic()
            design = self._design
            if design is not None:
                owed += (now - before) * self._rate / design.partitions
                rows, owed = int(owed), owed % 1
                if self._source.source.rows - self._watch.tuples / design.partitions < BEHIND_BATCHES * Source().take:
                    self._source.change(lambda source, rows=rows: {"rows": source.rows + rows})
            before = now
