"""PostgresTwoPhaseBolt: rows into PostgreSQL by PREPARE TRANSACTION (pip install 'stormline[postgresql]')."""

from __future__ import annotations

from collections.abc import Sequence

from stormline.bolts.two_phase_commit import TwoPhaseCommitBolt
from stormline.state.postgresql import PostgreSQLStore
from stormline.state.xa.connection import PreparingConnection
from stormline.state.xa.sink import SQLTwoPhaseSink, Write
from stormline.topology.errors import MissingExtra
from stormline.topology.two_phase_commit import Semantic


class PostgresTwoPhaseSink(SQLTwoPhaseSink):
    """Writes rows into PostgreSQL while batches are processed: PREPARE TRANSACTION there, COMMIT PREPARED later.

    The server needs `max_prepared_transactions` (0 unless it is set, and read at its start) of at least the
    transactions that are pending at once times the tasks of the bolt, and some more for those that crashes leave
    behind. Whoever commits must be the role that has prepared, in the same database.

    Two batches that write the same row, or the same value of a unique key, wait for one another: the later one fails
    after `lock_secs`, and is replayed. Where that is so, a store of `stormline.state` is the better way.

    It is declared as `SQLTwoPhaseSink` says, and writes into a table by COPY.
    """

    _stores = PostgreSQLStore
    store: PostgreSQLStore

    def _connected(self) -> PreparingConnection:
        try:
            from stormline.state.xa.postgresql_connection import PreparingPostgreSQL
        except ImportError as error:
            raise MissingExtra.of("postgresql", str(self.store), "psycopg") from error
        return PreparingPostgreSQL(*self.store.connection_arguments(), self.lock_secs)


class PostgresTwoPhaseBolt(TwoPhaseCommitBolt):
    """Writes each tuple into PostgreSQL on the executors, visible at the commit of its batch.

    Args:
        store (PostgreSQLStore): Where it is; see `PostgresTwoPhaseSink`, also for what follows.
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
        store: PostgreSQLStore,
        table: str | None = None,
        columns: Sequence[str] | None = None,
        *,
        write: Write | None = None,
        lock_secs: float = 1.0,
        semantic: Semantic = Semantic.EXACTLY_ONCE,
    ) -> None:
        super().__init__(PostgresTwoPhaseSink(store, table, columns, write=write, lock_secs=lock_secs), semantic)
