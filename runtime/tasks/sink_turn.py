"""TaskSinkTurn: one task's transaction of a two-phase sink in one attempt, on the executors."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from stormline.runtime.messages.sink_handle import SinkHandle
from stormline.runtime.tasks.sink_answers import checked_outcome
from stormline.topology.errors import FailedException, HandleUnusable, SerializationError
from stormline.topology.serialization import Registry
from stormline.topology.transaction_label import TransactionLabel
from stormline.topology.tuples import Tuple, TupleSource
from stormline.topology.two_phase_commit import CommitOutcome, Semantic, TwoPhaseCommitSink, takes_rows

if TYPE_CHECKING:
    import pyarrow

log = logging.getLogger("stormline")


class TaskSinkTurn:
    """Begins the transaction with the first tuple, and pre-commits it at the end.

    Args:
        sink: the task's own, opened.
        decided: the batch's handles are durable, and only their commit is possible: nothing is written (rule R3).
    """

    handle: SinkHandle | None = None

    def __init__(
        self,
        component: str,
        sink: TwoPhaseCommitSink,
        semantic: Semantic,
        label: TransactionLabel,
        registry: Registry,
        decided: bool,
    ) -> None:
        self._component = component
        self._sink = sink
        self._semantic = semantic
        self._label = label
        self._registry = registry
        self._swallows = decided and semantic is Semantic.EXACTLY_ONCE
        self._begun = False
        self._transaction: Any = None
        self._given_up = False

    def invoke(self, tup: Tuple) -> None:
        """Write one tuple."""
        self._write(self._sink.invoke, tup)

    def invoke_rows(self, rows: Sequence[list[Any]], source: TupleSource) -> None:
        """Write many tuples of one stream."""
        if takes_rows(self._sink):
            self._write(self._sink.invoke_rows, rows, source)
            return
        for values in rows:
            self._write(self._sink.invoke, Tuple(values, source))

    def invoke_batch(self, batch: pyarrow.RecordBatch) -> None:
        """Write a record batch."""
        self._write(self._sink.invoke_batch, batch)

    def _write(self, invoke: Callable[..., None], *rows: Any) -> None:
        if self._swallows or self._given_up:
            return
        try:
            if not self._begun:
                self._transaction = self._sink.begin_transaction(self._label)
                self._begun = True
            invoke(self._transaction, *rows)
        except Exception as error:
            if self._semantic is not Semantic.NONE:
                raise
            self._give_up(error)

    def finish(self) -> None:
        """Pre-commit the transaction, if there is one; commit it too where it need not wait for its turn."""
        if not self._begun or self._given_up:
            return
        try:
            data = self._sink.pre_commit(self._transaction)
            if data is not None and self._semantic is not Semantic.EXACTLY_ONCE:
                self._commit_now(data)
                data = None
        except Exception as error:
            if self._semantic is not Semantic.NONE:
                raise
            self._give_up(error)
            return
        self._begun, self._transaction = False, None
        if data is not None:
            self.handle = SinkHandle(self._component, self._label.text, self._as_read(data))

    def _commit_now(self, data: Any) -> None:
        outcome = checked_outcome(self._sink.commit(data), self._component)
        if outcome not in (CommitOutcome.DONE, CommitOutcome.ALREADY):
            raise FailedException(f"commit() of the sink of bolt {self._component!r} says {outcome}: it is replayed")

    def _as_read(self, data: Any) -> Any:
        """Return a handle as whoever reads it from ZooKeeper will."""
        try:
            return self._registry.unpack(self._registry.pack(data))
        except SerializationError as error:
            with contextlib.suppress(Exception):  # who cannot abort it either, lists it
                self._sink.abort(data)
            raise HandleUnusable(
                f"pre_commit() of the sink of bolt {self._component!r} ({type(self._sink).__name__}) returned a "
                f"{type(data).__name__} that cannot be stored: {error}; return plain data, such as the label's text"
            ) from error

    def _give_up(self, error: Exception) -> None:
        log.error("bolt %r writes nothing more of %s", self._component, self._label, exc_info=error)
        self._given_up = True
        self.roll_back()

    def roll_back(self) -> None:
        """Drop what was begun and not pre-committed, if anything; an error is logged."""
        if not self._begun:
            return
        transaction, self._begun, self._transaction = self._transaction, False, None
        try:
            self._sink.roll_back(transaction)
        except BaseException:  # whatever it is, the others are rolled back too
            log.exception("rolling back %s of bolt %r", self._label, self._component)
