"""PreparingConnection: what a connection to a database does for two-phase commit, in each database by other words."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from stormline.topology.transaction_label import TransactionLabel
from stormline.topology.two_phase_commit import CommitOutcome

GRANT = (
    "grant the role USAGE or CREATE as the table of the ledger needs it, SELECT, INSERT and DELETE on that table "
    "(stormline_xa), and what the bolt writes"
)


def locked(store: str, error: BaseException) -> str:
    """Return what is said where a lock is not had in time."""
    why = str(error).strip().replace("\n", " ")
    return (
        f"a row that this batch writes in {store} is locked by somebody else ({type(error).__name__}: {why}); the "
        "batch is replayed. Where two batches write the same row, or the same value of a unique key, the later one "
        "waits for the commit of the earlier: set topology.max.spout.pending to 1, or use a store of stormline.state"
    )


class PreparingConnection(Protocol):
    """One connection: it writes one transaction after another, or ends those that others have prepared.

    What fails by a server that is away, or by a lock that somebody holds too long, raises `StoreUnavailable`.
    """

    @property
    def database_id(self) -> str:
        """Which database this is, by the ledger in it."""

    @abstractmethod
    def start(self, label: TransactionLabel) -> None:
        """Begin a transaction."""

    @abstractmethod
    def own_sql(self) -> AbstractContextManager[Any]:
        """Give the driver's own connection to the user's SQL, which must not end the transaction."""

    @abstractmethod
    def translated(self, error: BaseException) -> BaseException:
        """Return what an error of the driver's means."""

    @abstractmethod
    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Write rows into a table."""

    @abstractmethod
    def prepare(self, label: TransactionLabel) -> bool:
        """Write the ledger's row, and prepare; return False, and undo all, where nothing had been written."""

    @abstractmethod
    def release(self) -> bool:
        """Let go of what is not prepared, and return whether the connection can be used again; else it is closed."""

    @abstractmethod
    def commit_prepared(self, label: TransactionLabel) -> CommitOutcome:
        """Commit what was prepared; say what is known where there is nothing."""

    @abstractmethod
    def abort_prepared(self, label: TransactionLabel) -> None:
        """Roll back what was prepared; do nothing where there is nothing."""

    @abstractmethod
    def listed(self, prefix: str) -> list[tuple[str, float | None]]:
        """Return label and age, in seconds, of what is prepared in this database."""

    @abstractmethod
    def forget(self, scope: str, before: int) -> None:
        """Remove the ledger's rows of a component's transactions before one."""

    @abstractmethod
    def close(self) -> None:
        """Let go of it."""
