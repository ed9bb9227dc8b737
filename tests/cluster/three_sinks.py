"""tests.topologies.three_sinks on Spark: its driver, its workers and its databases are killed, while readers watch."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psycopg
import pymysql

from tests.chaos.deaths import Appointment
from tests.cluster.driver_process import DriverProcess
from tests.services.database_server import DatabaseServer
from tests.services.mariadb import MariaDB
from tests.services.postgresql import PostgreSQL
from tests.starrocks.cluster import Cluster
from tests.starrocks.servers import Servers
from tests.topologies import three_sinks
from tests.topologies.three_sinks import ABORT, COMMIT, MARIADB, POSTGRESQL, ROWS, STARROCKS, point

SECS = 300.0
LOOK_SECS = 0.3
DATABASE = "sinks"

Read = Callable[[int], Sequence[int]]
"""Returns the numbers from this one on that are visible."""


class Watcher:
    """Looks at one database after another all the time: at each moment whole transactions, and none out of order.

    `wrong`: what it saw that must not be.
    """

    def __init__(self, reads: dict[str, Read]) -> None:
        self._reads = reads
        self.whole = dict.fromkeys(reads, 0)
        self.looks = 0
        self.wrong: list[str] = []
        self._newest = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    @property
    def committed(self) -> int:
        """How many transactions have been seen whole in each of the databases."""
        return min(self.whole.values())

    def close(self) -> None:
        """Look no more."""
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(LOOK_SECS):
            for name, read in self._reads.items():
                must = self._newest
                try:
                    found = sorted(read(self.whole[name] * ROWS))
                except (psycopg.Error, pymysql.MySQLError, OSError):
                    continue  # it is being killed
                self._check(name, found, must)
                self.looks += 1

    def _check(self, name: str, found: Sequence[int], must: int) -> None:
        """See that all of the transactions before the newest one that has been seen anywhere is there, once.

        Args:
            must: the last transaction of which anything had been seen in any database before this look.
        """
        first = self.whole[name] * ROWS
        newest = found[-1] // ROWS + 1 if found else self.whole[name]
        before = (max(newest, must) - 1) * ROWS
        if [n for n in found if n < before] != list(range(first, before)):
            self.wrong.append(f"{name} holds {found} from {first} on, and something of transaction {must} was visible")
        if len(found) != len(set(found)):
            self.wrong.append(f"{name} holds some rows twice: {found}")
        self._newest = max(self._newest, newest)
        self.whole[name] = (
            newest if found and len(found) == newest * ROWS - first else max(newest - 1, self.whole[name])
        )


class ThreeSinks:
    """The topology and its databases. One thing is killed at a time; each call returns once the topology goes on."""

    def __init__(self, folder: Path, postgresql: PostgreSQL, mariadb: MariaDB) -> None:
        self._folder = folder
        self._servers: dict[str, DatabaseServer] = {POSTGRESQL: postgresql, MARIADB: mariadb}
        self._postgresql, self._mariadb = postgresql, mariadb
        with psycopg.connect(postgresql.dsn()) as db:
            db.execute("CREATE TABLE numbers (n bigint)")
        with mariadb.connected() as db, db.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {DATABASE}")
            cursor.execute(f"CREATE TABLE {DATABASE}.numbers (n bigint) ENGINE=InnoDB")
        self._starrocks = Cluster(back_ends=2)
        self._starrocks.create_table("shop", "numbers", "n bigint not null")
        self._ends = Servers(self._starrocks)
        self._env = {
            "SINKS_POSTGRESQL": postgresql.dsn(),
            "SINKS_MARIADB": mariadb.url(DATABASE),
            "SINKS_STARROCKS": f"starrocks://root@{self._ends.front_address}/shop",
            "SINKS_FOLDER": str(folder),
        }
        self.output = folder / "output.txt"
        self._drivers: list[DriverProcess] = []
        self.watcher = Watcher(
            {POSTGRESQL: self._in_postgresql, MARIADB: self._in_mariadb, STARROCKS: self._in_starrocks}
        )
        self._driver = self._start()

    def _start(self) -> DriverProcess:
        self._drivers.append(DriverProcess(three_sinks.__name__, self._folder / "state", self.output, self._env))
        return self._drivers[-1]

    # ------------------------------------------------------------------------------------ what is there

    def _in_postgresql(self, first: int = 0) -> list[int]:
        with psycopg.connect(self._postgresql.dsn(), connect_timeout=5) as db:
            return [n for (n,) in db.execute("SELECT n FROM numbers WHERE n >= %s", [first])]

    def _in_mariadb(self, first: int = 0) -> list[int]:
        with self._mariadb.connected(database=DATABASE, connect_timeout=5) as db, db.cursor() as cursor:
            cursor.execute("SELECT n FROM numbers WHERE n >= %s", [first])
            return [n for (n,) in cursor.fetchall()]

    def _in_starrocks(self, first: int = 0) -> list[int]:
        return [n for (n,) in self._starrocks.rows("shop", "numbers") if n >= first]

    def visible(self) -> dict[str, list[int]]:
        """Return all rows that each database shows; StarRocks' in the order in which they became visible."""
        return {
            POSTGRESQL: sorted(self._in_postgresql()),
            MARIADB: sorted(self._in_mariadb()),
            STARROCKS: self._in_starrocks(),
        }

    def prepared(self) -> dict[str, list[str]]:
        """Return what is prepared, or begun, and was not ended, under any name at all."""
        with psycopg.connect(self._postgresql.dsn()) as db:
            in_postgresql = [gid for (gid,) in db.execute("SELECT gid FROM pg_prepared_xacts")]
        with self._mariadb.connected() as db, db.cursor() as cursor:
            cursor.execute("XA RECOVER")
            in_mariadb = [str(row) for row in cursor.fetchall()]
        states = self._starrocks.states("shop")
        open_ones = [label for label, state in states.items() if state not in ("VISIBLE", "ABORTED")]
        return {POSTGRESQL: in_postgresql, MARIADB: in_mariadb, STARROCKS: open_ones}

    @property
    def aborted(self) -> int:
        """How many of StarRocks' transactions were begun in vain."""
        return list(self._starrocks.states("shop").values()).count("ABORTED")

    # ------------------------------------------------------------------------------------ what is killed

    def wait_for(self, transactions: int) -> None:
        """Wait until so many transactions are committed."""
        self._wait(lambda: self.watcher.committed >= transactions)

    def kill_driver(self, place: str) -> None:
        """Let the driver be killed at a point of a commit; another one takes over."""
        self._wait_met(Appointment(self._folder, place, signal.SIGKILL))
        self._replace_driver()
        self._go_on()

    def kill_recovering_driver(self, sink: str) -> int:
        """Let a driver be killed at a commit, and the next one while it aborts what that has left in one database.

        Return how many have died: there may have been nothing to abort.
        """
        for died in range(1, 10):
            self._wait_met(Appointment(self._folder, point(sink, COMMIT), signal.SIGKILL))
            appointment = Appointment(self._folder, point(sink, ABORT), signal.SIGKILL)
            enough = self.watcher.committed + 2
            self._replace_driver()
            self._wait(lambda: appointment.kept_by() or self.watcher.committed > enough)  # noqa: B023
            if appointment.kept_by():
                self._replace_driver()
                self._go_on()
                return died + 1
            appointment.cancel()
        raise AssertionError(f"nine drivers that were killed in commits have left nothing prepared: {self._told()}")

    def _replace_driver(self) -> None:
        assert self._driver.end(SECS) == -signal.SIGKILL, self._told()
        self._driver = self._start()

    def kill_worker(self, place: str) -> None:
        """Let one of Spark's Python workers be killed at a point of what it prepares."""
        self._wait_met(Appointment(self._folder, place, signal.SIGKILL))
        self._go_on()

    def kill_server(self, sink: str, place: str, away_secs: float) -> None:
        """Kill a database while somebody stands at a point before or after a call to it."""
        pid = self._stopped_at(place)
        server = self._servers[sink]
        server.kill()
        os.kill(pid, signal.SIGCONT)
        time.sleep(away_secs)
        server.start()
        self._go_on()

    def restart_starrocks(self, end: str, place: str, away_secs: float) -> None:
        """Let an end of StarRocks answer nobody, lose what it has only in memory, and come back."""
        pid = self._stopped_at(place)
        self._ends.stop(end)
        if end == "front":
            self._starrocks.restart_front_end()
        else:
            self._starrocks.restart_back_end(int(end.removeprefix("back-")))
        os.kill(pid, signal.SIGCONT)
        time.sleep(away_secs)
        self._ends.start(end)
        self._go_on()

    def _stopped_at(self, place: str) -> int:
        """Have a process stop at a point; return which."""
        appointment = Appointment(self._folder, place, signal.SIGSTOP)
        self._wait_met(appointment)
        return appointment.kept_by()

    def _wait_met(self, appointment: Appointment) -> None:
        deadline = time.monotonic() + SECS
        while not appointment.kept_by():
            assert time.monotonic() < deadline, self._told()
            assert self._driver.exit_code in (None, -signal.SIGKILL), self._told()
            time.sleep(0.01)

    def _go_on(self) -> None:
        """Wait until a transaction more is committed that had not begun."""
        self.wait_for(self.watcher.committed + 2)
        assert self.watcher.wrong == []

    def _wait(self, condition: Callable[[], object]) -> None:
        """Wait for what only a driver that lives can bring about."""
        assert self._driver.wait_until(lambda: bool(condition()), SECS), self._told()

    def _told(self) -> str:
        return (
            f"driver: exit code {self._driver.exit_code}; committed: {self.watcher.whole}; "
            f"{self.output.read_text(errors='replace')[-4000:]}"
        )

    # ------------------------------------------------------------------------------------ the end

    def finish(self) -> None:
        """Wait until all is committed, and the driver has ended in good order."""
        assert self._driver.end(SECS) == 0, self._told()

    def close(self) -> None:
        """End all; what is prepared would hold its locks in servers that others use."""
        for driver in self._drivers:
            driver.close()
        self.watcher.close()
        self._ends.close()
