"""Numbers into PostgreSQL, MariaDB and StarRocks by two-phase commit, with appointments before and after each call.

Environment: SINKS_POSTGRESQL (a DSN), SINKS_MARIADB and SINKS_STARROCKS (URLs), SINKS_FOLDER (where appointments are
laid).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from stormline import (
    CommitOutcome,
    Config,
    Fields,
    MemoryTransactionalSpout,
    Topology,
    TransactionalTopologyBuilder,
    TwoPhaseCommitBolt,
    TwoPhaseCommitSink,
)
from stormline.state import MySQLStore, PostgreSQLStore
from stormline.state.starrocks import StarRocks
from stormline.state.starrocks.sink import StreamLoadSink
from stormline.state.xa import MariaDbXaSink, PostgresTwoPhaseSink
from tests.chaos import deaths

TOPOLOGY = "three-sinks"
TRANSACTIONS, ROWS = 2_000, 4
POSTGRESQL, MARIADB, STARROCKS = "postgresql", "mariadb", "starrocks"
SINKS = (POSTGRESQL, MARIADB, STARROCKS)

PREPARE, PREPARED = "prepare", "prepared"
"""On the executors: before a transaction of the resource is pre-committed, and after it."""

COMMIT, COMMITTED, ABORT = "commit", "committed", "abort"
"""In the driver: before a commit, after it, and before an abort."""

config = Config()
config.set_max_spout_pending(8)
config.set_message_timeout_secs(90)  # a machine that does much else takes long until the first wave of a new driver


def point(sink: str, moment: str) -> str:
    """Return the name of a point at which a process may have an appointment."""
    return f"{sink}-{moment}"


class Appointing(TwoPhaseCommitSink):
    """A sink that keeps appointments."""

    place: str

    def pre_commit(self, transaction: Any) -> Any:
        self._meet(PREPARE)
        handle = super().pre_commit(transaction)  # type: ignore[safe-super]
        self._meet(PREPARED)
        return handle

    def commit(self, handle: Any) -> CommitOutcome:
        self._meet(COMMIT)
        outcome = super().commit(handle)  # type: ignore[safe-super]
        self._meet(COMMITTED)
        return outcome

    def abort(self, handle: Any) -> None:
        self._meet(ABORT)
        super().abort(handle)  # type: ignore[safe-super]

    def _meet(self, moment: str) -> None:
        deaths.meet(Path(os.environ["SINKS_FOLDER"]), point(self.place, moment))


class PostgreSQLSink(Appointing, PostgresTwoPhaseSink):
    place = POSTGRESQL


class MariaDBSink(Appointing, MariaDbXaSink):
    place = MARIADB


class StarRocksSink(Appointing, StreamLoadSink):
    place = STARROCKS


def topology() -> Topology:
    """Transaction t writes the numbers from (t - 1) * ROWS on, into all three."""
    spout = MemoryTransactionalSpout({0: [[n] for n in range(TRANSACTIONS * ROWS)]}, Fields("n"), ROWS)
    builder = TransactionalTopologyBuilder(TOPOLOGY, "numbers", spout)
    sinks = {
        POSTGRESQL: (PostgreSQLSink(PostgreSQLStore(os.environ["SINKS_POSTGRESQL"], timeout_secs=10), "numbers"), 2),
        MARIADB: (MariaDBSink(MySQLStore(os.environ["SINKS_MARIADB"], timeout_secs=10), "numbers"), 1),
        STARROCKS: (StarRocksSink(StarRocks(os.environ["SINKS_STARROCKS"]), "numbers"), 1),
    }
    for name, (sink, tasks) in sinks.items():
        builder.set_bolt(name, TwoPhaseCommitBolt(sink), tasks).shuffle_grouping("numbers")
    return builder.build_topology()
