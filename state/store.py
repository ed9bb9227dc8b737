"""Store: one database in which a topology's committers store, each transaction once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from stormline.state.columns import INT_MAX
from stormline.state.connection import StoreConnection
from stormline.state.errors import InvalidStore, RefusedValue
from stormline.state.fence import Fence
from stormline.state.store_resource import StoreResource
from stormline.state.store_transaction import StoreTransaction
from stormline.topology.attempt import TransactionAttempt
from stormline.topology.commit_participants import WHOLE_TOPOLOGY
from stormline.topology.context import TopologyContext

ADOPTED = "adopted"
"""The scope of a fence that `adopt` writes: no transaction has stored it."""

_Self = TypeVar("_Self", bound="Store")


class Store(ABC):
    """Where a database is, as plain data: it can be declared in a module, printed, pickled; nothing is opened.

    Two equal stores are one: all that a transaction of the topology stores there is one transaction of the database.
    """

    @abstractmethod
    def connect(self) -> StoreConnection:
        """Return a new connection; Stormline's own tables are there."""

    @abstractmethod
    def __str__(self) -> str:
        """Say where it is; no secret is in it."""

    def open_resource(self) -> StoreResource:
        """Return what the commit phases of one process take part by."""
        return StoreResource(self)

    def __deepcopy__(self: _Self, memo: Any) -> _Self:
        return self

    def in_commit(self, context: TopologyContext, attempt: TransactionAttempt) -> StoreTransaction:
        """Return the transaction of the commit phase that runs; begin it where nobody has.

        Args:
            context (TopologyContext): What `prepare` was given.
            attempt (TransactionAttempt): What `prepare` was given.

        Raises:
            RefusedValue: These are not what `prepare` was given.
            NotCommitting: The commit phase of `attempt` does not run here.
            StoreMismatch: The database holds another history than the topology's state.
            StoreUnavailable: The database does not answer: the batch is replayed.
        """
        if not hasattr(context, "take_part") or not isinstance(attempt, TransactionAttempt):
            raise RefusedValue(
                f"{self} is asked for the commit of {attempt!r} in context {type(context).__name__}, expected the "
                "context and the attempt that prepare() was given, in this order; keep them in self there, and use the "
                "store in finish_batch()"
            )
        transaction = context.take_part(attempt, self, self.open_resource)
        assert isinstance(transaction, StoreTransaction)
        return transaction

    @contextmanager
    def transaction(self, context: TopologyContext, attempt: TransactionAttempt) -> Iterator[Any]:
        """Return the driver's own connection, for a `with` block, in the transaction that the maps store in.

        It is committed, or rolled back, with all else when the commit phase ends: commit nothing yourself, and let no
        statement change a map's table. Where the database holds this transaction already (the driver ended before it
        was recorded) the block runs all the same, and what it changes is undone at its end; a constraint that it
        violates then is no error. `is_stored` tells.

        Args:
            context (TopologyContext): What `prepare` was given.
            attempt (TransactionAttempt): What `prepare` was given.

        Raises:
            NotCommitting, StoreMismatch, StoreUnavailable: As `in_commit`.
        """
        with self.in_commit(context, attempt).own_sql() as connection:
            yield connection

    def is_stored(self, context: TopologyContext, attempt: TransactionAttempt) -> bool:
        """Return whether the database holds this transaction already, so that what it changes is left alone.

        Args:
            context (TopologyContext): What `prepare` was given.
            attempt (TransactionAttempt): What `prepare` was given.

        Raises:
            NotCommitting, StoreMismatch, StoreUnavailable: As `in_commit`.
        """
        return self.in_commit(context, attempt).stored

    def adopt(self, topology: str, txid: int) -> None:
        """Let a topology that has committed up to `txid` begin with this store, which holds nothing of it.

        Args:
            topology (str): The topology's id.
            txid (int): The last transaction that it has committed without this store.

        Raises:
            InvalidStore: It holds something of this topology, or `txid` is no number of a transaction.
        """
        if type(txid) is not int or not 0 <= txid < INT_MAX:
            raise InvalidStore(f"{self} is to be adopted at transaction {txid!r}, expected a number from 0 on")
        connection = self.connect()
        try:
            connection.begin()
            found = connection.lock_fence(topology, WHOLE_TOPOLOGY)
            txid_max = max((one.txid for one in connection.fences(topology).values()), default=0)
            if found is not None or txid_max:
                raise InvalidStore(
                    f"{self} holds transaction {txid_max} of topology {topology!r}, and is to be adopted at "
                    f"{txid}; adopt a store that holds nothing of the topology"
                )
            connection.raise_fence(topology, ADOPTED, Fence(0, txid, 0, 0))
            connection.commit()
        finally:
            connection.close()
