"""MemoryTwoPhaseSink: a two-phase sink in the memory of this process, for tests and for trying out."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from stormline.state.errors import InvalidStore
from stormline.topology.transaction_label import TransactionLabel
from stormline.topology.tuples import Tuple
from stormline.topology.two_phase_commit import CommitOutcome, PreparedTransaction, TwoPhaseCommitSink

Rows = list[tuple[Any, ...]]

_LOCK = threading.Lock()


@dataclass(slots=True)
class _Memory:
    prepared: dict[str, Rows] = field(default_factory=dict)
    committed: dict[str, Rows] = field(default_factory=dict)
    aborted: list[str] = field(default_factory=list)


_MEMORIES: dict[str, _Memory] = {}


class MemoryTwoPhaseSink(TwoPhaseCommitSink):
    """Rows in memory, by name: the same for all of the process that name it alike, so for `InProcessCluster` only.

    What is committed is kept until `clear`, and so is what was prepared and never ended: a second cluster in the
    process stands for a restart.

    Args:
        name (str): Anything.

    Raises:
        InvalidStore: the name is no text.
    """

    def __init__(self, name: str = "memory") -> None:
        if not isinstance(name, str):
            raise InvalidStore(f"a memory sink is named {name!r}, expected a text")
        self.name = name

    @property
    def _memory(self) -> _Memory:
        with _LOCK:
            return _MEMORIES.setdefault(self.name, _Memory())

    # ------------------------------------------------------------------------------------ what tests look at

    @property
    def rows(self) -> Rows:
        """What is visible: the values of each row without its attempt, in the order of the commits."""
        return [row for rows in list(self._memory.committed.values()) for row in rows]

    @property
    def prepared(self) -> list[str]:
        """The labels of what is pre-committed and not ended."""
        return list(self._memory.prepared)

    @property
    def committed(self) -> list[str]:
        """The labels of what is committed, in that order."""
        return list(self._memory.committed)

    @property
    def aborted(self) -> list[str]:
        """The labels of what was pre-committed and aborted."""
        return list(self._memory.aborted)

    def clear(self) -> None:
        """Forget all rows and transactions of this name."""
        with _LOCK:
            _MEMORIES.pop(self.name, None)

    # ------------------------------------------------------------------------------------ the sink

    def begin_transaction(self, label: TransactionLabel) -> Any:
        """Return the label, and a list for the rows.

        Args:
            label (TransactionLabel): the transaction's name.
        """
        rows: Rows = []
        return label.text, rows

    def invoke(self, transaction: Any, tup: Tuple) -> None:
        """Keep a row.

        Args:
            transaction (Any): what `begin_transaction` returned.
            tup (Tuple): what has arrived.
        """
        transaction[1].append(tuple(tup.values[1:]))

    def pre_commit(self, transaction: Any) -> Any:
        """Keep the rows whatever happens.

        Args:
            transaction (Any): what `begin_transaction` returned.

        Returns:
            the label, which is the handle.
        """
        label, rows = transaction
        self._memory.prepared[label] = rows
        return label

    def commit(self, handle: Any) -> CommitOutcome:
        """Make the rows visible.

        Args:
            handle (Any): the label.

        Returns:
            LOST where nobody has pre-committed them.
        """
        memory = self._memory
        if handle in memory.committed:
            return CommitOutcome.ALREADY
        rows = memory.prepared.pop(handle, None)
        if rows is None:
            return CommitOutcome.LOST
        memory.committed[handle] = rows
        return CommitOutcome.DONE

    def abort(self, handle: Any) -> None:
        """Forget the rows.

        Args:
            handle (Any): the label.
        """
        if self._memory.prepared.pop(handle, None) is not None:
            self._memory.aborted.append(handle)

    def list_prepared(self, prefix: str) -> Iterable[PreparedTransaction]:
        """Return what is pre-committed.

        Args:
            prefix (str): the beginning of the labels.
        """
        return [PreparedTransaction(label, label) for label in self.prepared if label.startswith(prefix)]
