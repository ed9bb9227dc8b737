"""Results: what a round's topology has done so far, as somebody sees it who reads where it writes."""

from __future__ import annotations

import contextlib
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import psycopg

from tests.chaos.design import Design
from tests.chaos.evidence import Evidence, collect
from tests.chaos.numbers import Sums


class Away(Exception):
    """Nobody can see it at the moment: a server is down."""


class Progress(NamedTuple):
    """The last transaction that all committers have committed, that any of them has, and how many tuples count."""

    least: int = 0
    most: int = 0
    tuples: int = 0


class Results(ABC):
    """What one topology has done. May be asked from several threads.

    `lags`: what is committed is seen a little later.
    """

    lags = False

    @abstractmethod
    def look(self) -> Progress:
        """Return how far it is.

        Raises:
            Away: a server is down.
        """

    @abstractmethod
    def evidence(
        self, rows: int, source: Mapping[int, Sums], committed: int, stores: Mapping[str, Mapping[int, Sums]]
    ) -> Evidence:
        """Return all that the checker looks at, now that all has ended.

        Args:
            rows: of each partition of the source.
            source: the sums of each key as they have to be.
            committed: what ZooKeeper holds.
            stores: what maps hold besides.
        """

    @abstractmethod
    def groups(self) -> Counter[int]:
        """Return how many steps have made transactions durable, by how many transactions are in one."""

    @abstractmethod
    def close(self) -> None:
        """Look no more."""


class TableResults(Results):
    """What is in the tables of the ledger."""

    def __init__(self, dsn: str, design: Design) -> None:
        self._dsn = dsn
        self._design = design
        self._local = threading.local()

    def look(self) -> Progress:
        topology = self._design.topology
        with self._connection() as db:
            fences = db.execute("SELECT min(txid), max(txid) FROM fence WHERE topology = %s", (topology,)).fetchone()
            counted = db.execute("SELECT sum(count) FROM state WHERE topology = %s", (topology,)).fetchone()
        assert fences is not None
        assert counted is not None
        return Progress(int(fences[0] or 0), int(fences[1] or 0), int(counted[0] or 0))

    @contextlib.contextmanager
    def _connection(self) -> Iterator[psycopg.Connection]:
        """Give this thread's connection, made anew where the last one broke."""
        held: psycopg.Connection | None = getattr(self._local, "db", None)
        try:
            self._local.db = held = held or psycopg.connect(self._dsn, connect_timeout=2, autocommit=True)
            yield held
        except psycopg.Error as error:
            if held is not None:
                held.close()
            self._local.db = None
            raise Away(str(error)) from error

    def evidence(
        self, rows: int, source: Mapping[int, Sums], committed: int, stores: Mapping[str, Mapping[int, Sums]]
    ) -> Evidence:
        design = self._design
        return collect(
            self._dsn, design.topology, design.partitions, rows, design.committers, source, committed, stores
        )

    def groups(self) -> Counter[int]:
        with psycopg.connect(self._dsn) as db:
            found = db.execute(
                "SELECT count(DISTINCT txid) FROM ledger WHERE topology = %s GROUP BY step", (self._design.topology,)
            )
            return Counter(int(size) for (size,) in found)

    def close(self) -> None:
        pass  # each thread that has asked holds a connection, which ends with it
