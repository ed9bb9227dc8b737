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
    def emit(self, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> None: ...

    @overload
    def emit(self, stream: str, values: Sequence[Any], /) -> None: ...

    def emit(self, values: Any, stream: Any = DEFAULT_STREAM) -> None:
        """Emit one tuple; Storm's order of arguments (stream, values) is understood too.

        Args:
            values (Any): a sequence, the attempt first, with one value for each declared field.
            stream (Any): id of a stream that was declared and is not direct.

        Raises:
            UndeclaredStream: the component does not declare the stream.
            WrongArity: there are more or fewer values than fields.
            WrongAttempt: the first value is not the attempt of the batch at hand.
            DirectStreamMismatch: the stream is direct; use `emit_direct`.
            StaleEmit: the attempt has ended.
        """

    def emit_all(self, rows: list[list[Any]], stream: str = DEFAULT_STREAM) -> None:
        """Emit many tuples of one stream, faster than one by one.

        Args:
            rows (list[list[Any]]): a list of values for each tuple, as for `emit`. The lists become the engine's:
                change none of them any more.
            stream (str): id of a stream that was declared and is not direct.

        Raises:
            EmitError: one of its kinds, as for `emit`; no tuple of the call counts then, since the attempt ends.
        """

    @overload
    def emit_direct(self, task_id: int, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> None: ...

    @overload
    def emit_direct(self, task_id: int, stream: str, values: Sequence[Any], /) -> None: ...

    def emit_direct(self, task_id: int, values: Any, stream: Any = DEFAULT_STREAM) -> None:
        """Emit one tuple to one task; Storm's order of arguments (task_id, stream, values) is understood too.

        Args:
            task_id (int): number of a task of a bolt that has a direct grouping on the stream.
            values (Any): a sequence, the attempt first, with one value for each declared field.
            stream (Any): id of a stream that was declared with `direct=True`.

        Raises:
            DirectStreamMismatch: the stream is not direct, or the task does not listen to it.
            UndeclaredStream, WrongArity, WrongAttempt, StaleEmit: as for `emit`.
        """

    def emit_batch(self, batch: pyarrow.RecordBatch, stream: str = DEFAULT_STREAM) -> None:
        """Emit each row of a record batch as one tuple.

        The attempt, which is the first field, is implied. A `pyarrow.Table` is emitted batch by batch; no rows are no
        tuples. The batch and its memory become the engine's own: a numpy array that pyarrow shares must not change any
        more. An opaque emitter gives all its batches one fixed schema (see `IOpaqueEmitter`).

        Args:
            batch (pyarrow.RecordBatch): any number of rows. Its columns are the stream's fields after the first, found
                by name, of any types that tuples can hold: no unions, intervals, views, extensions.
            stream (str): id of a stream that was declared and is not direct.

        Raises:
            MissingExtra: pyarrow is not installed.
            NotARecordBatch: `batch` is neither a record batch nor a table.
            WrongColumns: its columns are not the fields after the first.
            ColumnCannotTravel: a column's type is one of those that do not travel.
            UndeclaredStream, DirectStreamMismatch, StaleEmit: as for `emit`.
        """

    def report_error(self, error: BaseException) -> None:
        """Write an error to the log and go on; the attempt does not fail.

        Args:
            error (BaseException): what is logged, with its traceback.
        """
