"""FlightStore: the SQLite database of `examples.flight_delays`. The pattern to copy for a database of your own.

All that a transaction of the topology changes is changed by one transaction of the database, and the row in `fence`
says which one was the last. So before anything is changed, `FlightStore.add` compares, and

- skips, where this transaction is stored under its commit id: it was committed here, and the driver ended before it
  was recorded;
- applies, where the one before it is stored;
- stops with `StoreMismatch`, where any other is, or one of another topology id, which counts from the start: then the
  database and the topology's state are not of one history. One of them was removed or restored, or a driver that has
  lost its topology id to another one still writes.

Each value has the txid that stored it beside it. With one writer the fence would do; where several tasks each store
their own keys, compare the txid of each value too, and let each task have a fence of its own.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import NamedTuple

from stormline import StormlineError

SCHEMA = """
    CREATE TABLE IF NOT EXISTS fence (
        topology TEXT PRIMARY KEY, epoch INTEGER NOT NULL, txid INTEGER NOT NULL, attempt INTEGER NOT NULL,
        commit_id INTEGER NOT NULL
    );
    CREATE TABLE IF NOT EXISTS carriers (
        carrier TEXT PRIMARY KEY, flights INTEGER NOT NULL, departed INTEGER NOT NULL, delay_minutes INTEGER NOT NULL,
        txid INTEGER NOT NULL
    );
    CREATE TABLE IF NOT EXISTS departures (
        origin TEXT, hour INTEGER, flights INTEGER NOT NULL, txid INTEGER NOT NULL, PRIMARY KEY (origin, hour)
    );
    CREATE TABLE IF NOT EXISTS busiest_hours (
        origin TEXT PRIMARY KEY, hour INTEGER NOT NULL, flights INTEGER NOT NULL, txid INTEGER NOT NULL
    );
"""


class StoreMismatch(StormlineError):
    """The database holds another transaction than the topology's state says."""


class Token(NamedTuple):
    """What a commit shows to the database. Within one history every commit has a greater one than those before.

    From the first attempt on of which an effect may be here, all of a transaction have the same commit id.
    """

    epoch: int
    txid: int
    attempt: int
    commit_id: int


@dataclass(slots=True)
class Delays:
    """Flights of one carrier; those that did not depart have no delay, and add nothing to it."""

    flights: int = 0
    departed: int = 0
    delay_minutes: int = 0


class FlightStore:
    """Adds batches of flights, each once. `topology` is the topology id."""

    def __init__(self, path: Path, topology: str) -> None:
        self.path = path
        self._topology = topology

    def connect(self) -> sqlite3.Connection:
        """Return a connection to the database, which is made if it is missing.

        What is committed is on disk: SQLite's journal brings it back whole after a kill -9, and `synchronous` also
        after a power cut. It must be, since the topology never brings a recorded transaction again.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(self.path, isolation_level=None)
        db.execute("PRAGMA synchronous = EXTRA")
        db.executescript(SCHEMA)
        return db

    def txid_stored(self) -> int:
        """Return the last transaction that is stored; 0 where there is none, or no database."""
        if not self.path.is_file():
            return 0
        with closing(self.connect()) as db:
            return self._stored(db).txid

    def add(self, token: Token, carriers: Mapping[str, Delays], departures: Mapping[tuple[str, int], int]) -> None:
        """Add the counts of one transaction, unless they are there; all of it or nothing.

        Raises:
            StoreMismatch: the database is not of this topology's history. Nothing is changed.
        """
        with closing(self.connect()) as db, db:
            db.execute("BEGIN IMMEDIATE")
            if not self._pass_fence(db, token):
                return
            db.executemany(
                "INSERT INTO carriers VALUES (?, ?, ?, ?, ?) ON CONFLICT (carrier) DO UPDATE SET"
                " flights = flights + excluded.flights, departed = departed + excluded.departed,"
                " delay_minutes = delay_minutes + excluded.delay_minutes, txid = excluded.txid",
                [(carrier, *astuple(delays), token.txid) for carrier, delays in carriers.items()],
            )
            db.executemany(
                "INSERT INTO departures VALUES (?, ?, ?, ?) ON CONFLICT (origin, hour) DO UPDATE SET"
                " flights = flights + excluded.flights, txid = excluded.txid",
                [(origin, hour, flights, token.txid) for (origin, hour), flights in departures.items()],
            )
            db.executemany(
                "INSERT OR REPLACE INTO busiest_hours SELECT origin, hour, flights, ? FROM departures"
                " WHERE origin = ? ORDER BY flights DESC, hour LIMIT 1",
                [(token.txid, origin) for origin in {origin for origin, _ in departures}],
            )

    def _pass_fence(self, db: sqlite3.Connection, token: Token) -> bool:
        """Return whether this transaction is to be applied, and put its token in the fence."""
        others = [row[0] for row in db.execute("SELECT topology FROM fence WHERE topology <> ?", [self._topology])]
        if others:
            raise StoreMismatch(
                f"{self.path} holds what topology {others[0]!r} has counted, and this is topology {self._topology!r}, "
                "which would count it again; give it a database of its own, or remove this one"
            )
        stored = self._stored(db)
        other_history = stored.txid == token.txid and stored.commit_id != token.commit_id
        if stored.txid > token.txid or stored >= token or other_history:
            raise StoreMismatch(
                f"{self.path} holds transaction {stored.txid} of epoch {stored.epoch} of topology {self._topology!r}, "
                f"and this is transaction {token.txid} of epoch {token.epoch}: the topology's state was removed or set "
                "back, or another driver has taken over; to count from the start, remove the database too"
            )
        if stored.txid < token.txid - 1:
            raise StoreMismatch(
                f"{self.path} holds transaction {stored.txid} of topology {self._topology!r}, and the next one to "
                f"commit is {token.txid}: the database was removed or is an older copy; to count from the start, "
                "remove the topology's state too"
            )
        db.execute("INSERT OR REPLACE INTO fence VALUES (?, ?, ?, ?, ?)", [self._topology, *token])
        return stored.txid < token.txid

    def _stored(self, db: sqlite3.Connection) -> Token:
        row = db.execute("SELECT epoch, txid, attempt, commit_id FROM fence WHERE topology = ?", [self._topology])
        return Token(*(row.fetchone() or (0, 0, 0, 0)))
