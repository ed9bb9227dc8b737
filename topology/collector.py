"""Collector: what bolts and emitters emit to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, overload

from stormline.topology.grouping import DEFAULT_STREAM

if TYPE_CHECKING:
    import pyarrow


class Collector(Protocol):
    """What bolts and emitters emit to; the first value is always the attempt of the batch at hand."""

    @overload
    def emit(self, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> None:
        """Emit one tuple; raises a kind of `EmitError` at once where the declaration does not allow it."""

    @overload
    def emit(self, stream: str, values: Sequence[Any], /) -> None:
        """Emit one tuple, in Storm's order of arguments."""

    def emit_all(self, rows: list[list[Any]], stream: str = DEFAULT_STREAM) -> None:
        """Emit many tuples, faster than one by one. The lists become the engine's: change none of them any more."""

    @overload
    def emit_direct(self, task_id: int, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> None:
        """Emit one tuple of a direct stream to one task."""

    @overload
    def emit_direct(self, task_id: int, stream: str, values: Sequence[Any], /) -> None:
        """Emit one tuple to one task, in Storm's order of arguments."""

    def emit_batch(self, batch: pyarrow.RecordBatch, stream: str = DEFAULT_STREAM) -> None:
        """Emit each row of `batch` as one tuple.

        Its columns are the stream's fields after the first, found by name: the attempt is implied. A `pyarrow.Table`
        is emitted batch by batch; no rows are no tuples. The batch and its memory become the engine's own: a numpy
        array that pyarrow shares must not change any more. An opaque emitter gives all its batches one fixed schema
        (see `IOpaqueEmitter`).

        Args:
            batch: Any number of rows, of any types that tuples can hold: no unions, intervals, views, extensions.
            stream: A stream that was not declared as direct.

        Raises:
            MissingExtra: pyarrow is not installed.
            NotARecordBatch: `batch` is neither a record batch nor a table.
            WrongColumns: its columns are not the fields after the first.
            ColumnCannotTravel: a column's type is one of those that do not travel.
            UndeclaredStream, DirectStreamMismatch, StaleEmit: as for `emit`.
        """

    def report_error(self, error: BaseException) -> None:
        """Write an error to the log and go on."""
