"""MariaDbXaBolt: rows into MariaDB by XA transactions (pip install 'stormline[mysql]')."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from stormline.bolts.two_phase_commit import TwoPhaseCommitBolt
from stormline.state.mysql import MySQLStore
from stormline.state.xa.connection import PreparingConnection
from stormline.state.xa.sink import SQLTwoPhaseSink, Write
from stormline.topology.errors import MissingExtra
from stormline.topology.two_phase_commit import Semantic

if TYPE_CHECKING:
    from stormline.state.xa.mariadb_connection import PreparingMariaDB


class MariaDbXaSink(SQLTwoPhaseSink):
    """Writes rows into MariaDB while batches are processed: XA PREPARE there, XA COMMIT in the driver.

    Tables must be of InnoDB. The connection that has prepared is closed, since nobody else could commit while it is
    open: each transaction needs a new one.

    Two batches that write the same row, or the same value of a unique key, wait for one another: the later one fails
    after `lock_secs`, and is replayed. Where that is so, a store of `stormline.state` is the better way.

    It is declared as `SQLTwoPhaseSink` says; MySQL has other rules, and is refused.
    """

    _stores = MySQLStore
    store: MySQLStore
    _secured: Mapping[str, Any] = {}

    def _connected(self) -> PreparingConnection:
        try:
            from stormline.state.xa.mariadb_connection import PreparingMariaDB
        except ImportError as error:
            raise MissingExtra.of("mysql", str(self.store), "pymysql") from error
        place, password, timeout_secs, name = self.store.connection_arguments()
        secured, self._secured = self._secured, {}
        made = PreparingMariaDB({**place, **secured}, password, timeout_secs, name, self.lock_secs)
        self._secured = secured or made.secured()
        return made

    def _settle(self, connection: PreparingConnection) -> None:
        session = cast("PreparingMariaDB", connection).session
        self._asked(lambda other: cast("PreparingMariaDB", other).wait_for_end(session))


class MariaDbXaBolt(TwoPhaseCommitBolt):
    """Writes each tuple into MariaDB on the executors, visible at the commit of its batch.

    Args:
        store (MySQLStore): Where it is; see `MariaDbXaSink`, also for what follows.
        table (str | None): The table that takes each tuple as a row.
        columns (Sequence[str] | None): Which fields are taken; None: all behind the attempt.
        write (Write | None): In place of `table`: your own SQL for many rows.
        lock_secs (float): How many seconds to wait for a lock that somebody else holds.
        semantic (Semantic): What is promised.

    Raises:
        InvalidStore: They are something else.
    """

    def __init__(
        self,
        store: MySQLStore,
        table: str | None = None,
        columns: Sequence[str] | None = None,
        *,
        write: Write | None = None,
        lock_secs: float = 1.0,
        semantic: Semantic = Semantic.EXACTLY_ONCE,
    ) -> None:
        super().__init__(MariaDbXaSink(store, table, columns, write=write, lock_secs=lock_secs), semantic)
