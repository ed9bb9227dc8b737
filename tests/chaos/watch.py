"""Threads of the harness that look on: how far the topology is, and a source that grows."""

from __future__ import annotations

import threading
import time

import psycopg

from tests.chaos.design import Design
from tests.chaos.processes import wait_until
from tests.chaos.source import Source, SourceFile

LOOK_SECS = 0.05
FEED_SECS = 0.05

BEHIND_BATCHES = 12
"""How many batches the source may be ahead of what is committed. So what is put at its end is soon reached."""


class Watch:
    """Follows the last transaction that all committers of a topology have committed, and how many tuples count."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._topology = ""
        self._stopping = threading.Event()
        self.txid = 0
        self.tuples = 0
        self.advanced = time.monotonic()
        self._thread = threading.Thread(target=self._look_on, daemon=True, name="watch")
        self._thread.start()

    def follow(self, topology: str) -> None:
        """Look at another topology from now on."""
        self._topology = topology
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
            try:
                with psycopg.connect(self._dsn, connect_timeout=2, autocommit=True) as db:
                    while not self._stopping.wait(LOOK_SECS):
                        self._look(db)
            except psycopg.Error:
                pass  # it is down: somebody has killed it

    def _look(self, db: psycopg.Connection) -> None:
        topology = self._topology
        row = db.execute("SELECT min(txid) FROM fence WHERE topology = %s", (topology,)).fetchone()
        txid = int(row[0]) if row and row[0] is not None else 0
        if topology == self._topology and txid > self.txid:
            row = db.execute("SELECT sum(count) FROM state WHERE topology = %s", (topology,)).fetchone()
            self.tuples = int(row[0] or 0) if row else 0
            self.txid = txid
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
